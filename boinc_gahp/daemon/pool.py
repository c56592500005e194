"""Threads that work on requests."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Pool:
    """Up to ``size()`` daemon threads, each started when a task finds none that is idle.

    Not concurrent.futures: its threads are joined when the interpreter ends, and a daemon whose
    input has ended must not wait for a slow project. The queue is bounded by who fills it
    (:class:`~boinc_gahp.daemon.engine.Engine` counts its requests). Tasks must not raise.
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._tasks: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, task: Callable[[], None]) -> None:
        """Have ``task`` done by one of the threads, in its turn; returns at once.

        Raises:
            RuntimeError: there is no thread, and the system gives none.
        """
        with self._changed:
            self._tasks.append(task)
            if self._idle >= len(self._tasks):
                self._changed.notify()
            elif len(self._threads) < max(1, self._size()):
                self._start_thread(task)

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
                self._tasks.clear()
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _start_thread(self, task: Callable[[], None]) -> None:
        name = f"{self._name}-{len(self._threads) + 1}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # a limit on threads: those that there are do it all
            if not self._threads:
                self._tasks.remove(task)
                raise
        else:
            self._threads.append(thread)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not (self._tasks or self._closed):
                    self._changed.wait()
                self._idle -= 1
                if not self._tasks:
                    return
                task = self._tasks.popleft()
            task()
            del task  # a submit of 100,000 jobs is not kept until the next task comes
