"""Watches batches until they are over, and counts their jobs, without burdening the project."""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.api import control
from boinc_gahp.api.outputs.logs import attempts_of
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import (
    BadRequest,
    BatchNotFound,
    GahpError,
    NotFound,
    NotOwner,
    PermissionDenied,
    RpcError,
    TransportError,
)
from boinc_gahp.quantities import SPAN, Duration
from boinc_gahp.rpc.types import OVERLAP
from boinc_gahp.states import BatchState, JobState, job_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.session import Session
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import BatchInfo, JobInfo

B = TypeVar("B", bound="KnownBatch")

#: Seconds that the first poll may take, retries included, before the trouble is reported. Doubled
#: whenever that was too short, so that even a slow project is heard in the end.
_QUERY_TIMEOUT = 10.0
_LONGEST_QUERY_TIMEOUT = 120.0
#: Seconds for a poll even if less time is left, so that the last poll can succeed.
_LEAST = 2.0
#: About how many bytes a batch takes in query_batches, and a job in query_batch.
_BATCH_BYTES = 700
_JOB_BYTES = 130
#: Up to this many small batches are asked for alone, each with its jobs.
_ALONE = 2
_A_DAY = 86400.0
#: Seconds after which attempts are looked at, and the least between two such looks. Each takes a
#: few requests.
_FIRST_LOOK = 10.0
_NEXT_LOOK = 60.0


@dataclass(frozen=True, slots=True)
class Poll:
    """How often a project is asked, in seconds.

    The pause begins at ``shortest``, grows while nothing changes, and shrinks when something does.
    It is never shorter than a sixtieth of the time since the watch began, or than ten times what
    the project took for its last answer.

    Attributes:
        shortest: the shortest pause between an answer and the next question; more than 0.
        longest: the longest such pause; a day at most.

    Raises:
        BadRequest: the numbers are out of range, or ``shortest`` is larger than ``longest``.
    """

    shortest: Duration = 1.0
    longest: Duration = 30.0

    def __post_init__(self) -> None:
        shortest, longest = self.seconds
        if not 0 < shortest <= longest <= _A_DAY:
            raise BadRequest(
                f"a poll's pauses are {self.shortest} and {self.longest}: expected more than 0 and "
                "at most a day, and shortest no greater than longest"
            )

    @property
    def seconds(self) -> tuple[float, float]:
        """Both in seconds.

        :meta private:
        """
        return SPAN.read(self.shortest), SPAN.read(self.longest)


def watch(
    session: Session,
    batches: Sequence[B],
    *,
    poll: Poll = Poll(),
    until: float | None = None,
) -> Iterator[tuple[B, ...]]:
    """Yield the batches after every poll, until all are over or ``until`` is reached.

    See :meth:`Project.watch`; ``until`` is a time of ``time.monotonic()``.
    """
    handles = tuple(batches)
    pauses = PollPauses(poll)
    start = time.monotonic()
    refresher = _Refresher(session)
    while True:
        began = time.monotonic()
        changed = refresher.at(handles, until)
        answered = time.monotonic()
        yield handles
        if all(batch.is_over for batch in handles):
            return
        # During a poll that failed, the project spent little time on answers.
        cost = 0.0 if changed is None else answered - began
        pause = pauses.pause(answered - start, cost, changed=bool(changed))
        # Watchers that began together should not keep asking at the same moments.
        pause = pauses.slower.jittered(pause)
        if until is not None:
            pause = min(pause, until - time.monotonic())
            if pause <= 0:
                return
        session.closing.wait(pause)


class PollPauses:
    """The pauses between polls, as :class:`Poll` describes them."""

    def __init__(self, poll: Poll) -> None:
        self._shortest, self._longest = poll.seconds
        self._quiet = self._shortest
        #: How pauses grow while nothing changes.
        self.slower = Backoff(self._shortest, self._longest, factor=1.5, jitter=(0.9, 1.1))

    def pause(self, elapsed: float, cost: float, *, changed: bool) -> float:
        """Return the next pause.

        Args:
            elapsed: seconds since the watch began.
            cost: seconds that the project took to answer.
            changed: whether the answer contained any news.
        """
        self._quiet = (
            max(self._quiet / 2, self._shortest) if changed else self.slower.after(self._quiet)
        )
        return min(max(self._quiet, elapsed / 60, 10 * cost), self._longest)


class _Refresher:
    """Asks about batches with the cheapest RPC."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._timeout = _QUERY_TIMEOUT
        self._listed: int | None = None
        self._counting = Counting()
        self._begun = time.monotonic()
        #: When a batch's attempts are looked at, by its id; how many of its jobs were done at the
        #: last look, and how many had failed.
        self._looks: dict[int, tuple[float, int, int]] = {}

    def at(self, handles: Sequence[KnownBatch], until: float | None) -> bool | None:
        """Refresh the batches that are not over; return whether anything changed.

        None: the project could not be asked; each of those batches has the reason.
        """
        open_ = [batch for batch in handles if not batch.is_over]
        if not open_:
            return False
        now = time.monotonic()
        timeout = self._timeout
        if until is not None:
            timeout = max(min(timeout, until - now), _LEAST)
        project = self._session.rpc.until(now + timeout)
        try:
            news = self._news(project, open_)
        except PermissionDenied:
            raise
        except RpcError as error:
            if self._session.closing.is_set():
                raise
            if isinstance(error, TransportError) and error.may_be_running:
                # The project may have been about to answer.
                self._timeout = min(2 * self._timeout, _LONGEST_QUERY_TIMEOUT)
            for batch in open_:
                batch.trouble = error
            return None
        changed = False
        for batch in open_:
            info = news.get(batch.id)
            if info is None or info.name != batch.name:
                batch.vanish()
                changed = True
            else:
                jobs = self._counting.of(batch.id)
                seen = () if jobs is None else (jobs.running, jobs.longest)
                changed = batch.see(info, *seen) or changed
                changed = self._look_at_attempts(batch) or changed
                control.renew(batch, project)
        return changed

    def _look_at_attempts(self, batch: KnownBatch) -> bool:
        """Learn, while no more jobs get done or more fail, which attempts have failed.

        Returns:
            Whether that is new.
        """
        before, now = batch.attempts, time.monotonic()
        done, failed = batch.ndone, batch.nerror_jobs
        at, was_done, had_failed = self._looks.setdefault(batch.id, (now + _FIRST_LOOK, 0, 0))
        if batch.is_over or was_done == 0 < done:  # it may say that no job is done
            batch.attempts = ""
        if now >= at and not batch.is_over:
            pause = max(_NEXT_LOOK, (now - self._begun) / 60)
            self._looks[batch.id] = now + pause, done, failed
            batch.attempts = ""
            if done <= was_done or failed > had_failed:
                with suppress(RpcError):  # the next poll tells of it
                    project = self._session.rpc.until(now + _QUERY_TIMEOUT)
                    batch.attempts = attempts_of(batch, project)
        return batch.attempts != before

    def _news(self, project: WebRpcs, open_: Sequence[KnownBatch]) -> dict[int, BatchInfo]:
        """Return the project's answers about those batches; unknown ones are missing."""
        wanted = {batch.id for batch in open_}
        found: dict[int, BatchInfo] = {}
        if len(open_) <= _ALONE and all(batch.njobs <= FEW for batch in open_):
            for batch in open_:
                try:
                    details = project.query_batch(batch_id=batch.id, get_job_details=True)
                except NotFound:
                    continue
                found[batch.id] = details.batch
                self._counting.listed(details.batch, details.jobs)
            return found
        if not self._single_is_cheaper(open_):
            listed = project.query_batches()
            self._listed = len(listed)
            found = {info.id: info for info in listed if info.id in wanted}
        for batch_id in wanted - found.keys():
            # The batch is retired or gone, which the list does not show; or it is asked for alone.
            try:
                found[batch_id] = project.batch(batch_id)
            except NotFound:
                continue
        self._counting.update(project, found.values())
        return found

    def _single_is_cheaper(self, open_: Sequence[KnownBatch]) -> bool:
        """Tell whether listing these batches' few jobs is cheaper than listing all batches."""
        jobs = sum(batch.njobs for batch in open_)
        alone = jobs * _JOB_BYTES + len(open_) * _BATCH_BYTES
        return self._listed is not None and alone < self._listed * _BATCH_BYTES / 2


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
    """Asks a project for the states of the jobs of watched batches, without listing all each time.

    What a project charges (``web-rpcs.rst``, "Timings"): a list of a batch's jobs with their states
    costs it a query for each job, 0.14 ms. query_batch2 can be asked for jobs that have changed
    since some time, which costs it as much for these jobs only; but it finds batches by their
    names, and takes the oldest of a name.

    So the jobs of a batch are listed once, by its id, and then the changes are asked for, for all
    batches with one RPC. Changes of jobs that the batch does not have show that the name is another
    batch's. If a batch is small, it is listed each time: then no second RPC is needed.
    """

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
