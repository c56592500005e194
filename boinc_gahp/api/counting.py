"""Counts the jobs of watched batches by their states, without asking for all jobs each time.

What a project charges (``web-rpcs.rst``, "Timings"): a list of a batch's jobs with their states
costs it a query for each job, 0.14 ms. query_batch2 can be asked for jobs that have changed since
some time, which costs it as much for these jobs only; but it finds batches by their names, and
takes the oldest of a name.

So the jobs of a batch are listed once, by its id, and then the changes are asked for, for all
batches with one RPC. Changes of jobs that the batch does not have show that the name is another
batch's. If a batch is small, it is listed each time: then no second RPC is needed.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import BatchNotFound, GahpError, NotOwner, PermissionDenied
from boinc_gahp.rpc.types import OVERLAP
from boinc_gahp.states import BatchState, JobState, job_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import BatchInfo, JobInfo

log = logging.getLogger("boinc_gahp.api")

#: The jobs of a larger batch are not listed: that would take the project more than five seconds.
#: With PHP's defaults, no batch has as many.
MOST = 40_000
#: A batch of so few jobs is listed each time.
FEW = 200
#: Seconds between two lists of a batch's jobs, at least.
_PAUSE = 60.0
#: After an answer about changes that took so many seconds, the next is not asked for before
#: ``_SHARE`` times as many have passed: jobs of batches that were just made have all changed.
_SLOW = 1.0
#: A batch whose changes cannot be asked for is listed after so many times the time this takes.
_SHARE = 20


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs of a batch are in which state."""

    queued: int = 0
    in_progress: int = 0
    done: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """The sum of all states."""
        return self.queued + self.in_progress + self.done + self.failed + self.unknown


class JobTracker:
    """The jobs of one batch, as far as polls have seen them."""

    def __init__(self) -> None:
        self._looked = 0.0
        self._states: dict[str, JobState] = {}
        #: When each job that runs was first seen running.
        self._running: dict[str, float] = {}

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._running)

    @property
    def over(self) -> int:
        """How many jobs are done or have failed."""
        return sum(state.is_over for state in self._states.values())

    @property
    def longest(self) -> float | None:
        """Seconds for which a job was seen running, at least; None: no job runs."""
        return self._looked - min(self._running.values()) if self._running else None

    def see(self, jobs: Iterable[tuple[str, JobState]], now: float) -> bool:
        """Take the states of jobs at ``now``; the first time, of all jobs.

        Returns:
            Whether they are this batch's jobs; if not, nothing was changed.
        """
        jobs = list(jobs)
        if self._states and not all(name in self._states for name, _ in jobs):
            return False
        for name, state in jobs:
            self._states[name] = state
            if state is JobState.IN_PROGRESS:
                self._running.setdefault(name, now)
            else:
                self._running.pop(name, None)
        self._looked = now
        return True


class Counting:
    """Asks a project for the states of the jobs of watched batches."""

    def __init__(self) -> None:
        self._trackers: dict[int, JobTracker] = {}
        self._since: str | float | None = None
        #: Batches whose changes cannot be asked for by their names.
        self._nameless: set[int] = set()
        self._not_before: dict[int, float] = {}
        self._no_changes_before = -math.inf

    def of(self, batch_id: int) -> JobTracker | None:
        """Return what is known about a batch's jobs; None: nothing."""
        return self._trackers.get(batch_id)

    def listed(self, info: BatchInfo, jobs: Iterable[JobInfo]) -> None:
        """Take all jobs of a batch, as the project has just listed them."""
        # Jobs of a batch that is being made are not yet all there.
        if info.state is BatchState.IN_PROGRESS:
            tracker = self._trackers.get(info.id) or JobTracker()
            tracker.see(((job.name, job.state) for job in jobs), time.time())
            self._trackers[info.id] = tracker

    def update(self, project: WebRpcs, batches: Iterable[BatchInfo]) -> None:
        """Ask for what has changed, after ``batches``; an error leaves the numbers as they are.

        Raises:
            PermissionDenied: the account may not look at them any more.
        """
        wanted = {
            info.id: info
            for info in batches
            if info.state is BatchState.IN_PROGRESS and 0 < info.njobs <= MOST
        }
        if not wanted:
            return
        try:
            if self._since is None:
                # Without names, it tells only the time.
                self._since = project.query_batch2([]).server_time
            for info in wanted.values():
                self._list(project, info)
            self._changes(project, wanted)
        except PermissionDenied:
            raise
        except GahpError as error:
            log.debug("The jobs of watched batches cannot be counted now: %s", error)

    def _list(self, project: WebRpcs, info: BatchInfo) -> None:
        """List a batch whose changes cannot be asked for."""
        began = time.monotonic()
        is_known = info.id in self._trackers and info.id not in self._nameless
        if is_known or began < self._not_before.get(info.id, -math.inf):
            return
        self._not_before[info.id] = began + _PAUSE
        self.listed(info, project.iter_jobs(info.id))
        took = time.monotonic() - began
        self._not_before[info.id] = began + max(_PAUSE, _SHARE * took)

    def _changes(self, project: WebRpcs, wanted: Mapping[int, BatchInfo]) -> None:
        known = [
            info
            for info in wanted.values()
            if info.id in self._trackers and info.id not in self._nameless
        ]
        began = time.monotonic()
        if not known or self._since is None or began < self._no_changes_before:
            return
        # Only 0 asks for everything.
        since = max(1, math.floor(float(self._since)) - OVERLAP)
        try:
            answer = project.query_batch2([info.name for info in known], min_mod_time=since)
            took = time.monotonic() - began
            self._no_changes_before = began + _SHARE * took if took > _SLOW else -math.inf
        except (BatchNotFound, NotOwner) as error:
            # One name spoils the answer: perhaps it is first of all another account's.
            named = {info.id for info in known if info.name == error.named}
            self._nameless |= named or {info.id for info in known}
            return
        now = time.time()
        for info, jobs in zip(known, answer.batches, strict=True):
            tracker = self._trackers[info.id]
            is_its_own = tracker.see([(name, job_state(word)) for name, word in jobs], now)
            # Without its own changes, too, the name is another batch's.
            if not is_its_own or tracker.over < round(info.fraction_done * info.njobs):
                self._nameless.add(info.id)
        self._since = answer.server_time
