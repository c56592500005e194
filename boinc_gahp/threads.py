"""Work on threads: on one of its own, task by task, in turns of projects, on many things at once.

They are daemon threads, for which no exit waits: those of ``concurrent.futures`` are joined when
the interpreter ends, and a process whose client is gone must not wait for a slow project.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

log = logging.getLogger("boinc_gahp.threads")

T = TypeVar("T")
R = TypeVar("R")

#: Seconds after which a thread that has nothing to do ends.
_IDLE = 30.0
#: So many times the threads of one project are there for all together.
_TOGETHER = 2


def start(work: Callable[[], object], name: str) -> threading.Thread:
    """Have ``work`` done by a thread of its own; what it raises goes into the log.

    Raises:
        RuntimeError: the system gives no thread.
    """

    def run() -> None:
        try:
            work()
        except Exception:
            log.exception("the thread %r ended with an error", name)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class Workers:
    """Threads that do tasks, each started when a task finds none that is idle; thread-safe.

    What a task raises goes into the log, and keeps no other from being done.

    Args:
        name: what the threads are called.
        on_end: called after each task, on its thread.
    """

    def __init__(self, name: str, on_end: Callable[[], object] = lambda: None) -> None:
        self._name = name
        self._on_end = on_end
        self._lock = threading.Lock()
        self._came = threading.Condition(self._lock)
        self._went = threading.Condition(self._lock)
        #: Tasks that the next idle thread is to do, by their numbers.
        self._ready: deque[tuple[int, Callable[[], object]]] = deque()
        #: Key and slot of each task that is ready or being done, by its number.
        self._held: dict[int, tuple[Hashable, Hashable]] = {}
        self._slots: Counter[Hashable] = Counter()
        self._numbers = itertools.count(1)
        self._threads: list[threading.Thread] = []
        self._thread_numbers = itertools.count(1)
        self._idle = 0
        self._closed = False

    def start(
        self, task: Callable[[], object], key: Hashable = None, slot: Hashable = None
    ) -> bool:
        """Have ``task`` done by a thread; returns at once.

        Args:
            task: what to do.
            key: two tasks of one key are not under way at a time; None: it has none.
            slot: what it counts as.

        Returns:
            Whether that will be: not if one with the key is under way, and not if there is no
            thread and the system gives none.
        """
        with self._lock:
            if key is not None and self._has(key):
                return False
            number = next(self._numbers)
            self._ready.append((number, task))
            self._held[number] = key, slot
            self._slots[slot] += 1
            if self._idle >= len(self._ready):
                self._came.notify()
                return True
            try:
                name = f"{self._name}-{next(self._thread_numbers)}"
                self._threads.append(start(self._run, name))
            except RuntimeError as error:  # a limit on threads: those that there are do it all
                if not self._threads:
                    log.warning("Work of %r has to wait: %s", self._name, error)
                    self._ready.pop()
                    self._let_go(number)
                    return False
            return True

    def is_running(self, key: Hashable) -> bool:
        """Return whether a task is under way."""
        with self._lock:
            return self._has(key)

    def count(self, slot: Hashable) -> int:
        """Return how many tasks that count as ``slot`` are under way."""
        with self._lock:
            return self._slots[slot]

    def total(self) -> int:
        """Return how many tasks are under way."""
        return len(self._held)

    def numbers(self) -> frozenset[int]:
        """Return a number for each task that is under way; none is used twice."""
        with self._lock:
            return frozenset(self._held)

    def wait(self, deadline: float | None = None) -> bool:
        """Wait until none is under way, or ``time.monotonic()`` is ``deadline``; return whether."""
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        with self._lock:
            return self._went.wait_for(lambda: not self._held, timeout)

    def close(self, timeout: float = 0.0, *, drop: bool = True) -> None:
        """Have the threads end; wait for them, at most ``timeout`` seconds.

        Args:
            timeout: in seconds.
            drop: leave out tasks that no thread has begun.
        """
        deadline = time.monotonic() + timeout
        with self._lock:
            self._closed = True
            if drop:
                for number, _ in self._ready:
                    self._let_go(number)
                self._ready.clear()
            self._came.notify_all()
        # A task may start another one, whose thread is then last in the list.
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _has(self, key: Hashable) -> bool:
        return any(taken == key for taken, _ in self._held.values())

    def _let_go(self, number: int) -> None:
        _, slot = self._held.pop(number)
        self._slots[slot] -= 1
        if not self._slots[slot]:
            del self._slots[slot]

    def _run(self) -> None:
        with self._lock:
            self._idle += 1
        while (found := self._next()) is not None:
            number, task = found
            del found
            try:
                task()
            except BaseException:  # whatever it is, the others' work goes on
                log.exception("a task of %r went wrong", self._name)
            del task  # a submit of 100,000 jobs is not kept until the next task comes
            with self._lock:
                self._let_go(number)
                self._went.notify_all()
                self._idle += 1  # what is begun now is done by this thread
            self._on_end()

    def _next(self) -> tuple[int, Callable[[], object]] | None:
        """Wait for a task; None: the thread is to end."""
        with self._lock:
            is_needed = self._came.wait_for(lambda: self._ready or self._closed, _IDLE)
            self._idle -= 1
            if not is_needed:
                self._threads.remove(threading.current_thread())
            return self._ready.popleft() if self._ready else None


class Pool:
    """Workers shared by the projects that tasks are for.

    A project has at most half of the threads that the others leave of twice ``size()``, and always
    one: alone ``size()`` of them, a second project half as many, and so on. So one that hangs, and
    holds all that it may, leaves as many for those that come. All together have less than twice
    ``size()``, and one for each project that comes when there are none left.

    The queues are bounded by who fills them (:class:`~boinc_gahp.daemon.engine.Engine` counts its
    requests).
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._workers = Workers(name, self._promote)
        self._size = size
        self._lock = threading.Lock()
        #: By project, in the order in which they came to wait: tasks for which there is no room.
        self._waiting: dict[Hashable, deque[Callable[[], object]]] = {}

    def submit(self, task: Callable[[], object], project: Hashable = None) -> None:
        """Have ``task`` done by one of the threads, in its project's turn; returns at once.

        Raises:
            RuntimeError: there is no thread, and the system gives none.
        """
        with self._lock:
            self._waiting.setdefault(project, deque()).append(task)
        if not self._promote():
            raise RuntimeError("can't start new thread")

    def close(self, timeout: float, *, drop: bool = True) -> None:
        """Have the threads end, as :meth:`Workers.close` does."""
        if drop:
            with self._lock:
                self._waiting.clear()
        self._workers.close(timeout, drop=drop)

    def _promote(self) -> bool:
        """Have done what there is room for now; who holds fewest threads comes first.

        Returns:
            Whether there are threads; without one, nothing else can be under way or wait.
        """
        with self._lock:
            while able := [project for project in self._waiting if self._has_room(project)]:
                project = min(able, key=self._workers.count)
                tasks = self._waiting.pop(project)
                task = tasks.popleft()
                if tasks:
                    self._waiting[project] = tasks  # behind the others
                if not self._workers.start(task, slot=project):
                    return False
        return True

    def _has_room(self, project: Hashable) -> bool:
        held = self._workers.count(project)
        left = _TOGETHER * self._size() - (self._workers.total() - held)
        return held < max(1, left // _TOGETHER)


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
    that has ended the error is raised. Not a task for each item, of which there may be 100,000.

    Args:
        work: is called in threads of their own; where the system gives fewer, those do it all, and
            the calling thread where it gives none.
        items: what there is to do.
        threads: how many at most.
        name: what the threads are called.
        stop: work that takes long looks at it.
    """
    todo = deque(items)
    stop = stop or threading.Event()
    done: list[tuple[T, R]] = []
    errors: list[BaseException] = []

    def some() -> None:
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

    workers = Workers(name)
    try:
        for _ in range(min(max(1, threads), len(todo))):
            if not workers.start(some):
                some()
                break
        workers.wait()
    except BaseException:  # Ctrl-C: what is under way is broken off, and not waited for
        stop.set()
        raise
    finally:
        workers.close()
    if errors:
        raise errors[0]
    return done


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
    workers = Workers(name)
    begun: deque[_Begun[T, R]] = deque()
    try:
        for item in items:
            begun.append(_Begun(work, item))
            if not workers.start(begun[-1].run):
                begun[-1].run()
            if len(begun) >= threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        workers.close()


class _Begun(Generic[T, R]):
    """Work on one item, and what comes of it."""

    def __init__(self, work: Callable[[T], R], item: T) -> None:
        self._work = work
        self._item = item
        self._done: list[R] = []
        self._error: BaseException | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            self._done.append(self._work(self._item))
        except BaseException as error:  # noqa: BLE001  (raised in the thread that asks)
            self._error = error
        finally:
            self._ended.set()

    def result(self) -> R:
        """Wait for the end; return or raise what came of it."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._done[0]
