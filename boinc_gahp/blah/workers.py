"""Threads that a keeper has its work done by."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

log = logging.getLogger("boinc_gahp.blah")


class Workers:
    """Threads, one a task; never two for the same task at a time.

    They are daemon threads: a process whose client is gone does not wait for a slow project.

    Args:
        on_end: called after each task, on its thread.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._changed = threading.Condition()
        self._running: set[tuple[str, Hashable]] = set()

    def start(self, kind: str, which: Hashable, task: Callable[[], None]) -> bool:
        """Have ``task`` done unless one of that kind and name is under way; returns at once.

        Returns:
            Whether it was begun: not either if the system gives no thread.
        """
        key = (kind, which)
        with self._changed:
            if key in self._running:
                return False
            self._running.add(key)
        thread = threading.Thread(target=self._run, args=(key, task), daemon=True)
        thread.name = f"{kind} {which}"
        try:
            thread.start()
        except RuntimeError as error:  # a limit on threads: there is a next time
            log.warning("%s has to wait: %s", thread.name, error)
            self._end(key)
            return False
        return True

    def is_running(self, kind: str, which: Hashable) -> bool:
        """Return whether a task is under way."""
        with self._changed:
            return (kind, which) in self._running

    def count(self, kind: str) -> int:
        """Return how many tasks of a kind are under way."""
        with self._changed:
            return sum(running == kind for running, _ in self._running)

    def wait(self, deadline: float) -> bool:
        """Wait until none is under way, or ``time.monotonic()`` is ``deadline``; return whether."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._running, max(0.0, deadline - time.monotonic())
            )

    def _run(self, key: tuple[str, Hashable], task: Callable[[], None]) -> None:
        try:
            task()
        except Exception:  # whatever it is, the others' work goes on
            log.exception("%s %s went wrong", *key)
        finally:
            self._end(key)
            self._on_end()

    def _end(self, key: tuple[str, Hashable]) -> None:
        with self._changed:
            self._running.discard(key)
            self._changed.notify_all()
