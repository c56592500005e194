"""Runs the back-end programs, one pass after the other, in one thread."""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend import cleaning, programs
from boinc_gahp.localproject.backend.assimilator import assimilate_pass
from boinc_gahp.localproject.backend.generator import generate_pass
from boinc_gahp.localproject.backend.transitioner import transition_pass
from boinc_gahp.localproject.backend.validator import validate_pass
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.localproject.core import Core

log = logging.getLogger("boinc_gahp.localproject")

#: Deadlines are noticed within this many seconds; work from a request, at once.
_IDLE = 0.5
_EXPIRY_EVERY = 5.0
_CLEAN_EVERY = 600.0


@dataclass(slots=True)
class _Program:
    """A back-end program: what it does, how often, and its error if its last pass failed."""

    name: str
    run: Callable[[Core, float], int]
    every: float
    next_time: float = -math.inf
    error: str = ""

    def pass_once(self, core: Core, now: float) -> int:
        """Run a pass; return the number of items handled.

        An exception is logged once and noted, and the program has to wait before its next pass.
        """
        count, error = 0, ""
        self.next_time = now + self.every
        try:
            count = self.run(core, now)
        except Exception as problem:
            error = shorten(f"{type(problem).__name__}: {problem}")
            if error != self.error:
                log.exception("the %s has failed; it will be tried again", self.name)
            self.next_time = now + programs.RETRY
        self.error = error
        if count or error:
            try:
                with core.db.write() as connection:
                    programs.note(connection, self.name, now, handled=count, error=error)
            except sqlite3.Error as problem:
                log.debug("the database table program cannot be written: %s", problem)
        return count


def _clean(core: Core, now: float) -> int:
    return cleaning.delete_job_files(core, now) + cleaning.delete_retired_outputs(core, now)


#: What each back-end program does, and how often; in the order in which they run, and in which
#: people see them.
PROGRAMS: dict[str, tuple[Callable[[Core, float], int], float]] = {
    programs.WORK_GENERATOR: (generate_pass, 0.0),
    programs.TRANSITIONER: (transition_pass, 0.0),
    programs.VALIDATOR: (validate_pass, 0.0),
    programs.ASSIMILATOR: (assimilate_pass, 0.0),
    "file_deleter": (lambda core, _now: cleaning.delete_pass(core), 0.0),
    "batch_expiry": (cleaning.expire_batches, _EXPIRY_EVERY),
    "job_file_cleaner": (_clean, _CLEAN_EVERY),
}


class Supervisor:
    """The project's back end."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._stop = threading.Event()
        self._programs = [_Program(name, *each) for name, each in PROGRAMS.items()]

    def stop(self) -> None:
        """End after the current pass."""
        self._stop.set()
        self._core.wake.ring()

    def run(self) -> None:
        """Work until stopped."""
        while not self._stop.is_set():
            seen = self._core.wake.rings
            if self.run_once(time.time()):
                self._core.wake.ring()
            else:
                self._core.wake.wait(seen, _IDLE)

    def run_once(self, now: float) -> int:
        """Run every program once, unless it has to wait; return the number of items handled."""
        done = 0
        for program in self._programs:
            if now >= program.next_time and not self._stop.is_set():
                done += program.pass_once(self._core, now)
        return done
