"""The same work on many things, by a few threads."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    threads: int,
    name: str,
    stop: threading.Event | None = None,
) -> list[tuple[T, R]]:
    """Return each item with ``work(item)``, in the order in which they were ready.

    At the first error nothing more is begun, ``stop`` is set for whatever is under way, and when
    that has ended the error is raised. Not an executor's ``map``: that makes an object of a
    kilobyte and a half for each item beforehand, and tells an error only in its turn.

    Args:
        work: is called in threads of their own; where the system gives fewer, those do it all, and
            the calling thread where it gives none.
        items: what there is to do.
        threads: how many at most.
        name: what the threads are called.
        stop: work that takes long looks at it.
    """
    todo = deque(items)
    if not todo:
        return []
    stop = stop or threading.Event()
    done: list[tuple[T, R]] = []
    errors: list[BaseException] = []

    def worker() -> None:
        while not stop.is_set():
            try:
                item = todo.popleft()
            except IndexError:
                return
            try:
                done.append((item, work(item)))
            except BaseException as error:  # noqa: BLE001  (raised below, in the caller's thread)
                errors.append(error)
                stop.set()

    try:
        started = _started(worker, max(1, min(threads, len(todo))), name)
        if not started:
            worker()
        for thread in started:
            thread.join()
    except BaseException:  # Ctrl-C: what is under way is broken off, and not waited for
        stop.set()
        raise
    if errors:
        raise errors[0]
    return done


def _started(worker: Callable[[], None], count: int, name: str) -> list[threading.Thread]:
    """Start threads, as many as there may be; not an executor's, which an exit would wait for."""
    started: list[threading.Thread] = []
    for number in range(1, count + 1):
        thread = threading.Thread(target=worker, name=f"{name}-{number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # a limit on threads
            break
        started.append(thread)
    return started


def in_order(work: Callable[[T], R], items: Iterable[T], *, threads: int, name: str) -> Iterator[R]:
    """Yield ``work(item)`` for each item, in the order of the items, as it is asked for.

    An error is raised in its turn, and then nothing more is begun; what is under way when nobody
    asks any more ends by itself.

    Args:
        work: is called in threads of their own; in the calling one where the system gives none.
        items: is read no further than needed.
        threads: how many items are worked on at a time, at most.
        name: what the threads are called.
    """
    begun: deque[_Begun[R]] = deque()
    for item in items:
        begun.append(_Begun(work, item, name))
        if len(begun) >= threads:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


class _Begun(Generic[R]):
    """Work on one item, in a thread of its own: that is little beside an RPC."""

    def __init__(self, work: Callable[[T], R], item: T, name: str) -> None:
        self._done: list[R] = []
        self._error: BaseException | None = None
        self._ended = threading.Event()

        def run() -> None:
            try:
                self._done.append(work(item))
            except BaseException as error:  # noqa: BLE001  (raised in the thread that asks)
                self._error = error
            finally:
                self._ended.set()

        try:
            threading.Thread(target=run, name=name, daemon=True).start()
        except RuntimeError:  # a limit on threads
            run()

    def result(self) -> R:
        """Wait for the end; return or raise what came of it."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._done[0]
