"""What an account's manager does now and then, and what happens if something fails."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.errors import LedgerError
from boinc_gahp.htcondor._retry_times import is_ahead

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("boinc_gahp.htcondor")

T = TypeVar("T")

#: Seconds to wait after an error of the ledger, or an unexpected one.
FAULT = 5.0


class PeriodicTask:
    """One kind of work, for one thread at a time; other threads may do other kinds.

    Times are seconds since the epoch.

    Args:
        name: the name of the kind.
        due: given the time, returns when there is something to do; a time in the past (0) is now.
            Only uses the ledger.
        work: does everything that is due at the given time, while its second argument returns true;
            work that cannot be done now stays pending. Raises LedgerError.
        every: returns how many seconds apart it is done, at least.

    Attributes:
        next: the time before which it is not done again.
    """

    def __init__(
        self,
        name: str,
        due: Callable[[float], float],
        work: Callable[[float, Callable[[], bool]], None],
        every: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.name = name
        self._due = due
        self._work = work
        self._every = every
        self.next = -math.inf

    def due(self, now: float) -> float:
        """Return when to do it; a time in the past is now."""
        waits = is_ahead(self.next, now, self._every() + FAULT)
        return max(self.next if waits else 0.0, self._due(now))

    def run(self, now: float, goes_on: Callable[[], bool]) -> None:
        """Do what is due, while ``goes_on`` returns true; raises LedgerError."""
        self.next = now + self._every()
        self._work(now, goes_on)


class ErrorGuard:
    """Logs the errors of a manager's work and has it done again later; thread-safe.

    Args:
        worker: the manager, for the log.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._last_message = ""

    def __call__(self, what: str, work: Callable[[], T]) -> T | float:
        """Return what ``work`` returns; if it fails, when to do it again: :data:`FAULT` from now.

        Args:
            what: the work, for the log: "<worker> could not <what>".
            work: what may fail.
        """
        try:
            return work()
        except LedgerError as error:
            level = logging.DEBUG if str(error) == self._last_message else logging.ERROR
            log.log(level, "%s could not %s: %s", self._worker, what, error)
            self._last_message = str(error)
        except Exception:
            log.exception("%s could not %s", self._worker, what)
        return time.time() + FAULT
