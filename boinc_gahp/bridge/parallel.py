"""The same work on many things, by a few threads."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
        work: is called in threads of their own.
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

    count = max(1, min(threads, len(todo)))
    with ThreadPoolExecutor(count, thread_name_prefix=name) as pool:
        for _ in range(count):
            pool.submit(worker)
    if errors:
        raise errors[0]
    return done
