"""Threads that a keeper has its work done by, and what becomes of their errors."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.blah.patience import is_ahead
from boinc_gahp.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

log = logging.getLogger("boinc_gahp.blah")

#: Seconds to wait when the ledger itself fails, or something that nobody thought of.
FAULT = 5.0


@dataclass(slots=True)
class Again:
    """When to do something again, in seconds since the epoch."""

    at: float


class Guard:
    """Keeps a keeper going whatever happens: the next attempt may go well; for any thread.

    Args:
        who: the keeper, for the log.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._said = ""

    @contextmanager
    def __call__(self, what: str) -> Iterator[Again]:
        """Yield when to do it again, to be set inside; :data:`FAULT` from now if it fails.

        Args:
            what: "<who> could not <what>".
        """
        again = Again(time.time() + FAULT)
        try:
            yield again
        except LedgerError as error:
            level = logging.DEBUG if str(error) == self._said else logging.ERROR
            log.log(level, "%s could not %s: %s", self._who, what, error)
            self._said = str(error)
        except Exception:
            log.exception("%s could not %s", self._who, what)
        else:
            return
        again.at = time.time() + FAULT


def drop_past(times: dict[int, float], now: float, longest: float) -> None:
    """Drop what is not to be waited for any more; other threads may set times meanwhile."""
    for key, at in list(times.items()):
        if not is_ahead(at, now, longest):
            times.pop(key, None)


class Workers:
    """Threads, one a task; never two for the same task at a time.

    They are daemon threads: a process whose client is gone does not wait for a slow project.

    Args:
        on_end: called after each task, on its thread.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._changed = threading.Condition()
        #: Under way: by kind and name, the slot and a number of its own.
        self._running: dict[tuple[str, Hashable], tuple[str, int]] = {}
        self._numbers = itertools.count(1)

    def start(
        self, kind: str, which: Hashable, task: Callable[[], None], slot: str | None = None
    ) -> bool:
        """Have ``task`` done unless one of that kind and name is under way; returns at once.

        Args:
            kind: of the task.
            which: its name.
            task: what to do.
            slot: what it counts as; None: its kind.

        Returns:
            Whether it was begun: not either if the system gives no thread.
        """
        key = (kind, which)
        with self._changed:
            if key in self._running:
                return False
            self._running[key] = (kind if slot is None else slot, next(self._numbers))
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

    def count(self, slot: str) -> int:
        """Return how many tasks that count as ``slot`` are under way."""
        with self._changed:
            return sum(taken == slot for taken, _ in self._running.values())

    def numbers(self) -> frozenset[int]:
        """Return a number for each task that is under way; none is used twice."""
        with self._changed:
            return frozenset(number for _, number in self._running.values())

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
            self._running.pop(key, None)
            self._changed.notify_all()
