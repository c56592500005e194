"""Reports the progress of a submit to its caller."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Literal

from boinc_gahp.submit.types import Progress

if TYPE_CHECKING:
    from boinc_gahp.submit.types import OnProgress, Step

#: Seconds between two reports, except a step's first and last.
_PAUSE = 0.1


class Interrupted(BaseException):
    """The progress callback raised ``error``; code in between must not take it for a failure.

    So it has a separate class: an OSError from a terminal is not a broken connection.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Meter:
    """Counts the work of many threads, and reports it now and then; never backwards.

    Args:
        tell: called by one thread at a time; None: no reports.
    """

    def __init__(self, tell: OnProgress | None = None) -> None:
        self._progress = tell
        self._lock = threading.Lock()
        self._step: Step = "reading"
        self._unit: Literal["bytes", "files", "jobs"] = "bytes"
        self._done = self._reported = self._total = 0
        self._when = -math.inf
        self._trouble: BaseException | None = None

    def begin(self, step: Step, total: int, unit: Literal["bytes", "files", "jobs"]) -> None:
        """Begin a step, or go back to it with another total; raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._step, self._unit = step, unit
            self._done = self._reported = 0
            self._total = total
            self._report()

    def add(self, count: int) -> None:
        """Count work; less than 0 is work to be repeated. Raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._done += count
            last = self._done >= self._total > self._reported
            if last or time.monotonic() >= self._when + _PAUSE:
                self._report()

    def finish(self) -> None:
        """Report that the step is done; raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._done = self._total
            if self._reported < self._total:
                self._report()

    def _check(self) -> None:
        if self._trouble is not None:
            raise Interrupted(self._trouble)

    def _report(self) -> None:
        self._reported = min(max(self._reported, self._done), self._total)
        if self._progress is None:
            return
        try:
            self._progress(Progress(self._step, self._reported, self._total, self._unit))
        except BaseException as error:
            self._trouble = error
            raise Interrupted(error) from error
        self._when = time.monotonic()
