"""How far a submit is, told to whoever wants to know."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Literal

from boinc_gahp.bridge.types import Progress

if TYPE_CHECKING:
    from boinc_gahp.bridge.types import OnProgress, Step

#: Seconds between two reports, but for a step's first and last.
_PAUSE = 0.1


class Interrupted(BaseException):
    """Whoever was told has raised ``error``; nothing in between is to take it for a failure.

    An error of its own kind: an OSError from somebody's terminal is no broken connection.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Meter:
    """Counts what many threads do, and tells one at a time, now and then; never backwards.

    Args:
        tell: None: nobody wants to know.
    """

    def __init__(self, tell: OnProgress | None = None) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._step: Step = "reading"
        self._unit: Literal["bytes", "files", "jobs"] = "bytes"
        self._done = self._told = self._total = 0
        self._when = 0.0
        self._trouble: BaseException | None = None

    def begin(self, step: Step, total: int, unit: Literal["bytes", "files", "jobs"]) -> None:
        """Begin a step, or go back to it with another total; raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._step, self._unit = step, unit
            self._done = self._told = 0
            self._total = total
            self._report()

    def add(self, count: int) -> None:
        """Count; less than 0 is what has to be done again. Raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._done += count
            last = self._done >= self._total > self._told
            if last or time.monotonic() >= self._when + _PAUSE:
                self._report()

    def finish(self) -> None:
        """Tell that the step is through; raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._done = self._total
            if self._told < self._total:
                self._report()

    def _check(self) -> None:
        if self._trouble is not None:
            raise Interrupted(self._trouble)

    def _report(self) -> None:
        self._told = min(max(self._told, self._done), self._total)
        if self._tell is None:
            return
        try:
            self._tell(Progress(self._step, self._told, self._total, self._unit))
        except BaseException as error:
            self._trouble = error
            raise Interrupted(error) from error
        self._when = time.monotonic()
