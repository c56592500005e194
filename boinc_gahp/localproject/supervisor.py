"""Runs the back-end programs, one pass after the other, in one thread."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from . import expiry
from .assimilator import assimilate_pass
from .file_deleter import delete_pass
from .transitioner import transition_pass
from .validator import validate_pass

if TYPE_CHECKING:
    from .core import Core

#: Deadlines are noticed within this many seconds; work that a request makes, at once.
_IDLE = 0.5
_EXPIRY_EVERY = 5.0
_CLEAN_EVERY = 600.0


class Supervisor:
    """The project's back end."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._stop = threading.Event()
        self._next_expiry = 0.0
        self._next_cleaning = 0.0

    def stop(self) -> None:
        """End after the current pass."""
        self._stop.set()
        self._core.wake.ring()

    def run(self) -> None:
        """Work until stopped."""
        while not self._stop.is_set():
            seen = self._core.wake.count()
            if self.run_once(time.time()):
                self._core.wake.ring()
            else:
                self._core.wake.wait(seen, _IDLE)

    def run_once(self, now: float) -> int:
        """Run every program once; return how much there was to do."""
        core = self._core
        done = (
            transition_pass(core, now)
            + validate_pass(core, now)
            + assimilate_pass(core, now)
            + delete_pass(core)
        )
        if now >= self._next_expiry:
            self._next_expiry = now + _EXPIRY_EVERY
            done += expiry.expire_batches(core, now)
        if now >= self._next_cleaning:
            self._next_cleaning = now + _CLEAN_EVERY
            done += expiry.delete_job_files(core, now)
            done += expiry.delete_retired_outputs(core, now)
        return done
