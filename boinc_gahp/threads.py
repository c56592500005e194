"""Runs work on threads: on a thread of its own, as tasks, fairly by project, in parallel.

They are daemon threads, so that no exit waits for them: those of ``concurrent.futures`` are joined
at interpreter exit, and a process without a client must not wait for a slow project. All threads
and locks are in ``threads.rst``, "The daemon" and "Locks".
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

log = logging.getLogger("boinc_gahp.threads")

T = TypeVar("T")
R = TypeVar("R")

#: Seconds after which an idle thread ends.
_IDLE = 30.0
#: All slots together have so many times the threads of one.
_TOGETHER = 2


def start(work: Callable[[], object], name: str) -> threading.Thread:
    """Run ``work`` on its own thread; exceptions go into the log.

    Raises:
        RuntimeError: the system cannot start a thread.
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
    """Threads that run tasks; a new one is started if none is idle. Thread-safe.

    A task's exceptions go into the log and do not affect other tasks.

    With a ``size``, a slot may use at most half of the threads that the others leave of twice
    ``size()``, and always one: alone ``size()`` of them, a second slot half as many, and so on. So
    a project that hangs with all its threads leaves as many for the others. All together have less
    than twice ``size()``, plus one for each slot that comes when none are left. The caller limits
    the queues (:class:`~boinc_gahp.daemon._engine.Engine` counts its requests).

    Args:
        name: the threads' name.
        on_end: called after each task, on its thread.
        size: how many threads a slot may have; None: as many as it has tasks.
    """

    def __init__(
        self,
        name: str,
        on_end: Callable[[], object] = lambda: None,
        size: Callable[[], int] | None = None,
    ) -> None:
        self._name = name
        self._on_end = on_end
        self._size = size
        self._lock = threading.Lock()
        self._came = threading.Condition(self._lock)
        self._went = threading.Condition(self._lock)
        #: By slot, in the order of their arrival: tasks that wait for room, with their numbers.
        self._waiting: dict[Hashable, deque[tuple[int, Callable[[], object]]]] = {}
        #: Tasks for the next idle thread.
        self._ready: deque[tuple[int, Callable[[], object]]] = deque()
        #: Key and slot of each task that is waiting or running, by its number.
        self._held: dict[int, tuple[Hashable, Hashable]] = {}
        #: How many tasks of a slot have room.
        self._begun: Counter[Hashable] = Counter()
        self._numbers = itertools.count(1)
        self._threads: list[threading.Thread] = []
        self._thread_numbers = itertools.count(1)
        self._idle = 0
        self._closed = False

    def start(
        self, task: Callable[[], object], key: Hashable = None, slot: Hashable = None
    ) -> bool:
        """Let a thread run ``task``; returns at once.

        Args:
            task: what to do.
            key: only one task with this key runs at a time; None: no limit.
            slot: what shares the threads with others: a project, or a kind of task.

        Returns:
            Whether it will run: not if another with the key is under way, and not if there is no
            thread and none can be started.
        """
        with self._lock:
            if key is not None and self._has(key):
                return False
            number = next(self._numbers)
            self._held[number] = key, slot
            self._waiting.setdefault(slot, deque()).append((number, task))
            return self._promote()

    def is_running(self, key: Hashable) -> bool:
        """Return whether a task with this key is under way."""
        with self._lock:
            return self._has(key)

    def count(self, slot: Hashable) -> int:
        """Return how many tasks of this slot have a thread, or get the next one."""
        with self._lock:
            return self._begun[slot]

    def numbers(self) -> frozenset[int]:
        """Return a number for each task that is under way; numbers are never reused."""
        with self._lock:
            return frozenset(self._held)

    def wait(self, deadline: float | None = None) -> bool:
        """Wait for the tasks, until ``time.monotonic()`` is ``deadline``; return if all ended."""
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        with self._lock:
            return self._went.wait_for(lambda: not self._held, timeout)

    def close(self, timeout: float = 0.0, *, drop: bool = True) -> None:
        """End the threads; wait for them at most ``timeout`` seconds.

        Args:
            timeout: in seconds.
            drop: leave out tasks that have not begun.
        """
        deadline = time.monotonic() + timeout
        with self._lock:
            self._closed = True
            if drop:
                for number, _ in self._ready:
                    self._let_go(number)
                for number, _ in itertools.chain(*self._waiting.values()):
                    del self._held[number]
                self._ready.clear()
                self._waiting.clear()
            self._came.notify_all()
        # A task may start another one, whose thread is then appended to the list.
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _has(self, key: Hashable) -> bool:
        return any(taken == key for taken, _ in self._held.values())

    def _promote(self) -> bool:
        """Let threads have the tasks for which there is room; the slot with the fewest comes first.

        Returns:
            Whether there are threads; without one, nothing else can be under way or waiting.
        """
        while able := [slot for slot in self._waiting if self._has_room(slot)]:
            slot = min(able, key=self._begun.__getitem__)
            tasks = self._waiting.pop(slot)
            self._ready.append(tasks.popleft())
            if tasks:
                self._waiting[slot] = tasks  # behind the others
            self._begun[slot] += 1
            if self._idle >= len(self._ready):
                self._came.notify()
                continue
            try:
                name = f"{self._name}-{next(self._thread_numbers)}"
                self._threads.append(start(self._run, name))
            except RuntimeError as error:  # a limit on threads: the existing ones do it all
                if not self._threads:
                    log.warning("%r cannot start a thread: %s", self._name, error)
                    self._let_go(self._ready.pop()[0])
                    return False
        return True

    def _has_room(self, slot: Hashable) -> bool:
        if self._size is None:
            return True
        begun = self._begun[slot]
        left = _TOGETHER * self._size() - (self._begun.total() - begun)
        return begun < max(1, left // _TOGETHER)

    def _let_go(self, number: int) -> None:
        _, slot = self._held.pop(number)
        self._begun[slot] -= 1
        if not self._begun[slot]:
            del self._begun[slot]

    def _run(self) -> None:
        with self._lock:
            self._idle += 1
        while (found := self._next()) is not None:
            number, task = found
            del found
            try:
                task()
            except BaseException:  # whatever it is, the other tasks go on
                log.exception("a task of %r failed", self._name)
            del task  # do not keep a submit of 100,000 jobs until the next task comes
            with self._lock:
                self._let_go(number)
                self._went.notify_all()
                self._idle += 1  # this thread runs the task that is started now
                self._promote()
            self._on_end()

    def _next(self) -> tuple[int, Callable[[], object]] | None:
        """Wait for a task; None: the thread must end."""
        with self._lock:
            is_needed = self._came.wait_for(lambda: self._ready or self._closed, _IDLE)
            self._idle -= 1
            if not is_needed:
                self._threads.remove(threading.current_thread())
            return self._ready.popleft() if self._ready else None


def in_parallel(
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    threads: int,
    name: str,
    stop: threading.Event | None = None,
) -> list[tuple[T, R]]:
    """Return each item with ``work(item)``, in the order in which they were finished.

    After the first error nothing more is begun, ``stop`` is set for the work under way, and when
    that has ended the error is raised. It does not make a task for each item, since there may be
    100,000.

    Args:
        work: called in separate threads; if the system allows fewer, those do it all, and without
            any, the calling thread.
        items: the items.
        threads: the most threads.
        name: the threads' name.
        stop: long work should check it.
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
    except BaseException:  # Ctrl-C: running work is stopped, and not waited for
        stop.set()
        raise
    finally:
        workers.close()
    if errors:
        raise errors[0]
    return done


def in_order(work: Callable[[T], R], items: Iterable[T], *, threads: int, name: str) -> Iterator[R]:
    """Yield ``work(item)`` for each item, in the items' order, as the caller asks for it.

    An error is raised in its turn, and then nothing more is begun. If the caller stops asking, work
    under way still ends normally.

    Args:
        work: called in separate threads; in the calling one if the system allows none.
        items: read no further than needed.
        threads: how many items are worked on at a time, at most.
        name: the threads' name.
    """
    from concurrent.futures import Future  # noqa: PLC0415  (a daemon that only pings needs none)

    def begin(item: T) -> Future[R]:
        future: Future[R] = Future()

        def run() -> None:
            try:
                future.set_result(work(item))
            except BaseException as error:  # noqa: BLE001  (raised in the thread that asks)
                future.set_exception(error)

        if not workers.start(run):
            run()
        return future

    workers = Workers(name)
    begun: deque[Future[R]] = deque()
    try:
        for item in items:
            begun.append(begin(item))
            if len(begun) >= threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        workers.close()
