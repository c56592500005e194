"""Threads that work on requests, shared by the projects that the requests are for."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

#: So many times the threads of one project are there for all together.
_TOGETHER = 2


class Pool:
    """Daemon threads, each started when a task finds none that is idle.

    A project has at most half of the threads that the others leave of twice ``size()``, and always
    one: alone ``size()`` of them, a second project half as many, and so on. So one that hangs, and
    holds all that it may, leaves as many for those that come. All together have less than twice
    ``size()``, and one for each project that comes when there are none left.

    Not concurrent.futures: its threads are joined when the interpreter ends, and a daemon whose
    input has ended must not wait for a slow project. The queues are bounded by who fills them
    (:class:`~boinc_gahp.daemon.engine.Engine` counts its requests). Tasks must not raise.
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        #: By project, in the order in which they came to wait: tasks for which there is no room.
        self._waiting: dict[Hashable, deque[Callable[[], None]]] = {}
        #: Tasks that the next idle thread is to do, each with its project.
        self._ready: deque[tuple[Hashable, Callable[[], None]]] = deque()
        #: By project: tasks that are ready or being done.
        self._held: Counter[Hashable] = Counter()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, task: Callable[[], None], project: Hashable = None) -> None:
        """Have ``task`` done by one of the threads, in its project's turn; returns at once.

        Raises:
            RuntimeError: there is no thread, and the system gives none.
        """
        with self._changed:
            if project not in self._waiting and self._has_room(project):
                self._make_ready(project, task)
            else:
                self._waiting.setdefault(project, deque()).append(task)

    def close(self, timeout: float, *, drop: bool = True) -> None:
        """Have the threads end; wait for them, at most ``timeout`` seconds.

        Args:
            timeout: in seconds.
            drop: leave out tasks that no thread has begun.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            self._closed = True
            if drop:
                self._ready.clear()
                self._waiting.clear()
            self._changed.notify_all()
        # A thread may start another one as long as tasks wait, which is then last in the list.
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _has_room(self, project: Hashable) -> bool:
        held = self._held[project]
        left = _TOGETHER * self._size() - (self._held.total() - held)
        return held < max(1, left // _TOGETHER)

    def _make_ready(self, project: Hashable, task: Callable[[], None]) -> None:
        self._ready.append((project, task))
        self._held[project] += 1
        if self._idle >= len(self._ready):
            self._changed.notify()
            return
        try:
            self._start_thread()
        except RuntimeError:  # a limit on threads: those that there are do it all
            if not self._threads:
                self._ready.pop()
                self._let_go(project)
                raise

    def _start_thread(self) -> None:
        name = f"{self._name}-{len(self._threads) + 1}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _let_go(self, project: Hashable) -> None:
        self._held[project] -= 1
        if not self._held[project]:
            del self._held[project]

    def _promote(self) -> None:
        """Make ready what there is room for now; who holds fewest threads comes first."""
        while able := [project for project in self._waiting if self._has_room(project)]:
            project = min(able, key=self._held.__getitem__)
            tasks = self._waiting.pop(project)
            task = tasks.popleft()
            if tasks:
                self._waiting[project] = tasks  # behind the others
            self._make_ready(project, task)

    def _run(self) -> None:
        done: tuple[Hashable, ...] = ()
        while True:
            with self._changed:
                self._idle += 1
                for project in done:
                    self._let_go(project)
                self._promote()
                while not (self._ready or self._closed):
                    self._changed.wait()
                self._idle -= 1
                if not self._ready:
                    return
                project, task = self._ready.popleft()
            task()
            del task  # a submit of 100,000 jobs is not kept until the next task comes
            done = (project,)
