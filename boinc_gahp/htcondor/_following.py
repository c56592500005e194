"""Follows jobs on a project: one background poll for all jobs of an owner.

A poll only asks for changes since the last one, if its time is known (min_mod_time; the project
makes sure that nothing is lost, ``web-rpcs.rst``, "Changes since"). For a batch that is new to this
process, and for all batches every ``poll_all`` seconds, it asks for everything.

A request about many batches may fail because of one of them: the project refuses that one, its PHP
dies of it, a front end gives up waiting. If the project answers a ping, the batches are divided
until the one to blame is alone. From then on it is asked for by its id, less and less often while
that fails, and the others go on without it.

No request is repeated at once: the next poll asks again, and what a batch makes fail would fail as
often, each time the batches are divided, while the other batches wait.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import LedgerError, NotFound, NotOwner, RpcError
from boinc_gahp.fetch.failures import attempts_words, unfinished_jobs
from boinc_gahp.htcondor import _failures
from boinc_gahp.htcondor._context import going
from boinc_gahp.htcondor._upkeep import PeriodicTask
from boinc_gahp.quantities import in_parts
from boinc_gahp.states import LEDGER_STATES, JobState, job_state
from boinc_gahp.submit.query import query_batches, query_jobs
from boinc_gahp.threads import in_parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.ledger.rows import BatchRow, JobRow
    from boinc_gahp.submit.types import BatchJobs

log = logging.getLogger("boinc_gahp.htcondor")

#: Batches in one request, and jobs in them if it asks for all jobs: 10,000 take 1.4 s and 1 MB
#: (``web-rpcs.rst``, "Timings").
_BATCHES_PER_QUERY = 100
_JOBS_PER_QUERY = 20_000
#: While nothing changes, each pause is longer than the last by this factor.
_SLOWER = 1.5
#: Threads that ask about failed jobs, and seconds of a poll that they may take.
_FAILURE_THREADS = 4
_FAILURE_TIME = 30.0
#: Batches in a row that cannot be asked about, after which a poll ends: the cause cannot be in so
#: many of them.
_MAX_UNANSWERED = 4
#: Seconds between two looks at attempts, of any batches: each takes a few requests, of which one
#: lists a whole batch. So for a batch they get rarer, as this part of its age.
_LOOK = 60.0
_LOOK_PART = 0.1
#: Seconds between notes in the ledger that the project answers, for people who watch it.
_RECORD_INTERVAL = 60.0

_EVERYTHING = "0"


@dataclass(slots=True)
class _Followed:
    """A batch, and what this process knows about it.

    Attributes:
        alive: how many of its jobs are alive.
        since: server_time of its last answer; :data:`_EVERYTHING` to ask for all of its jobs.
        words: the status words of its jobs that are already in the ledger.
        failing: its jobs in error whose failure is not in the ledger yet.
        alone: whether it has made a request fail, and so is asked for by its id.
        probe: whether to ask for it by its name again, although it is ``alone``.
        trouble: why it cannot be asked about, for people.
        is_without_done: whether no job was done at the last poll.
        looked: when its jobs' attempts were looked at last.
        attempts: which attempts had failed then, for people.
    """

    row: BatchRow
    alive: int = 0
    since: str = _EVERYTHING
    words: dict[str, str] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    alone: bool = False
    probe: bool = False
    trouble: str = ""
    is_without_done: bool = False
    looked: float = -math.inf
    attempts: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """The key of its pauses."""
        return "follow", self.row.id

    @property
    def is_open(self) -> bool:
        """Whether the project may have news about it."""
        return self.since == _EVERYTHING or any(
            job_state(word) is not JobState.DONE for word in self.words.values()
        )


class Follower:
    """Asks a project about an owner's jobs, and writes the answers to the ledger.

    Used by one thread at a time.

    Args:
        context: what the account's manager shares with its parts.
        start_clock: returns a clock that begins at a time.
    """

    def __init__(
        self,
        context: AccountContext,
        start_clock: Callable[[float], Callable[[], float]] = going,
    ) -> None:
        self._context = context
        self._start_clock = start_clock
        self._jobs = context.jobs
        self._pauses = context.pauses
        self._pace = context.htcondor.poll_shortest
        self._all_at = -math.inf
        self._batches: dict[int, _Followed] = {}
        self._changed = False
        self._unknown_words: set[str] = set()
        self._clock: Callable[[], float] = time.time
        self._unanswered = 0
        self._recorded = -math.inf
        #: Looking at attempts takes requests of its own: news of jobs does not wait for these.
        self.task = PeriodicTask(
            "attempts",
            lambda _: 0.0 if self._without_done() else math.inf,
            self._look_at_attempts,
            lambda: _LOOK,
        )

    def poll(self, now: float) -> float:
        """Ask the project about all jobs that it has; return when to ask next.

        Both times are seconds since the epoch. The pause is ``poll_shortest`` after any news (such
        as a new batch), and grows to ``poll_longest`` while there is none.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        self._clock = self._start_clock(now)
        self._changed = False
        self._unanswered = 0
        self._update_batches()
        poll_all = self._context.htcondor.poll_all
        if now >= self._all_at or self._all_at > now + poll_all:
            self._all_at = now + poll_all
            for batch in self._batches.values():
                batch.since, batch.probe = _EVERYTHING, batch.alone
        goes_on = True
        due = [
            batch
            for batch in self._batches.values()
            if batch.is_open and not self._pauses.wait(batch.key, self._clock())
        ]
        for group in _groups(due):
            goes_on = not self._context.stopping.is_set() and self._query(group)
            if not goes_on:
                break
        ended = self._clock()
        if self._pauses.wait(None, ended):
            return self._pauses.until()
        for batch in self._batches.values():
            words = batch.words.values()
            batch.is_without_done = bool(words) and JobState.DONE not in map(job_state, words)
        self._fail()
        return self._next(ended, goes_on=goes_on)

    def _project(self) -> FetchContext:
        """Return the project, for requests that are not repeated."""
        project = self._context.project
        return replace(project, project=project.project.once())

    def _next(self, now: float, *, goes_on: bool) -> float:
        htcondor = self._context.htcondor
        shortest, longest = htcondor.poll_shortest, htcondor.poll_longest
        slower = Backoff(shortest, longest, factor=_SLOWER)
        self._pace = shortest if self._changed and goes_on else slower.after(self._pace)
        return min(now + self._pace, max(now, self._all_at))

    # -- what to ask

    def _update_batches(self) -> None:
        alive = self._jobs.on_project(*self._context.owner)
        for gone in self._batches.keys() - alive.keys():
            self._pauses.forget(self._batches.pop(gone).key)
        for batch_id in alive.keys() - self._batches.keys():
            row = self._jobs.batch(batch_id)
            if row is not None:
                trouble = row.trouble or ""
                self._batches[batch_id] = _Followed(row, alone=bool(trouble), trouble=trouble)
                self._changed = True
        for batch in self._batches.values():
            batch.alive = alive[batch.row.id]

    def _query(self, group: Sequence[_Followed]) -> bool:
        """Ask about batches, for everything about all of them or only for news.

        Returns:
            Whether to go on with other batches.
        """
        if group[0].alone and not group[0].probe:
            return self._query_alone(group[0])
        since = min((batch.since for batch in group), key=float)
        try:
            answer = query_batches(self._project(), [batch.row.name for batch in group], since)
        except RpcError as error:
            return self._divide_group(group, error)
        self._answered()
        for batch, pairs in zip(group, answer.batches, strict=True):
            everything = since == _EVERYTHING
            batch.alone = batch.probe = False
            self._clear_trouble(batch)
            self._record(batch, pairs, everything=everything)
            named = {name for name, _ in pairs}
            on_project = self._on_project(batch, described=False) if everything else []
            if any(job.job_name not in named for job in on_project) and not self._query_alone(
                batch
            ):
                return False
            batch.since = answer.server_time if _is_time(answer.server_time) else _EVERYTHING
        return True

    def _divide_group(self, group: Sequence[_Followed], error: RpcError) -> bool:
        """Find out which batches the project refuses or chokes on; ask about the others."""
        culprit = _culprit(error, group)
        if culprit is None and self._pauses.is_of_project(error, self._clock()):
            return False
        if culprit is None and len(group) > 1:
            half = len(group) // 2
            return self._query(group[:half]) and self._query(group[half:])
        culprit = culprit or group[0]
        log.info("Batch %s is asked about by its id: %s", culprit.row.name, error)
        culprit.alone, culprit.probe = True, False
        rest = [batch for batch in group if batch is not culprit]
        return (not rest or self._query(rest)) and self._query_alone(culprit)

    def _query_alone(self, batch: _Followed) -> bool:
        try:
            self._query_by_id(batch)
        except RpcError as error:
            return self._put_off(batch, error)
        self._answered()
        self._clear_trouble(batch)
        return True

    def _put_off(self, batch: _Followed, error: RpcError) -> bool:
        """Let a batch wait that the project does not answer for; return whether to go on."""
        if self._context.stopping.is_set() or self._pauses.is_of_project(error, self._clock()):
            return False
        until = self._pauses.later(batch.key, self._clock())
        words = f"no news of its jobs: {error}"
        level = logging.DEBUG if batch.trouble == words else logging.WARNING
        log.log(level, "Batch %s: %s", batch.row.name, words)
        batch.trouble = words
        self._jobs.postpone(batch.row.id, until, words)
        self._unanswered += 1
        return self._unanswered < _MAX_UNANSWERED

    def _answered(self) -> None:
        """Note that the project answers."""
        self._unanswered = 0
        self._pauses.succeeded()
        now = self._clock()
        # A time in the future is from before the clock was set back.
        if self._recorded <= now < self._recorded + _RECORD_INTERVAL:
            return
        self._recorded = now
        try:
            self._jobs.polled(*self._context.owner, now)
        except LedgerError as error:
            # The answer itself matters more: if that cannot be written, an error is raised.
            log.debug("Cannot record when %s last answered: %s", self._context.url, error)

    def _clear_trouble(self, batch: _Followed) -> None:
        """Note that a batch can be asked about."""
        if batch.trouble:
            self._pauses.forget(batch.key)
            batch.trouble = ""
            self._jobs.postpone(batch.row.id, 0.0, None)
            log.info("Batch %s can be asked about again", batch.row.name)

    def _query_by_id(self, batch: _Followed) -> None:
        """Ask about a batch by its id; if there is no such batch, all its jobs are lost."""
        # Twice: a project with database trouble may not find a batch that it has.
        details = self._jobs_by_id(batch) or self._jobs_by_id(batch)
        if details is None:
            self._lose(batch, self._on_project(batch))
            return
        self._record(batch, details.jobs, everything=True)
        if details.complete:
            names = frozenset(name for name, _ in details.jobs)
            self._lose(batch, [job for job in self._on_project(batch) if job.job_name not in names])

    def _jobs_by_id(self, batch: _Followed) -> BatchJobs | None:
        if batch.row.project_batch_id is None:
            return None
        try:
            return query_jobs(self._project(), batch.row.project_batch_id)
        except (*_failures.IS_LOST, NotOwner):
            return None

    # -- what it says

    def _record(
        self, batch: _Followed, pairs: Iterable[tuple[str, str]], *, everything: bool
    ) -> None:
        """Write news to the ledger, or everything, in case it has missed something."""
        words = dict(pairs)
        news = {name: word for name, word in words.items() if batch.words.get(name) != word}
        reported = words if everything else news
        states = {name: job_state(word) for name, word in reported.items()}
        changes = {
            name: LEDGER_STATES[state] for name, state in states.items() if state in LEDGER_STATES
        }
        if changes:
            self._jobs.statuses(batch.row.id, changes)
        batch.failing.difference_update(changes)
        batch.failing.update(name for name, state in states.items() if state is JobState.FAILED)
        batch.words.update(news)
        self._changed = self._changed or bool(news)
        if "finished" in changes.values():
            self._context.wake()
        for word in set(news.values()) - self._unknown_words:
            if job_state(word) is not JobState.UNKNOWN:
                continue
            self._unknown_words.add(word)
            log.warning(
                "%s reports the state %r of a job, which boinc_gahp does not know",
                self._context.url,
                word,
            )

    def _on_project(self, batch: _Followed, *, described: bool = True) -> list[JobRow]:
        return self._jobs.jobs_of(batch.row.id, "queued", "running", described=described)

    def _lose(self, batch: _Followed, jobs: list[JobRow]) -> None:
        if jobs:
            _failures.lose(self._context, jobs, batch.row)
            self._changed = True
            self._context.wake()

    def attempts(self, batch_id: int) -> str:
        """Return which attempts at a batch's jobs have failed; "": none are known."""
        batch = self._batches.get(batch_id)
        return batch.attempts if batch is not None and batch.is_without_done else ""

    def _without_done(self) -> list[_Followed]:
        return [batch for batch in list(self._batches.values()) if batch.is_without_done]

    def _look_at_attempts(self, now: float, _goes_on: Callable[[], bool]) -> None:
        """Learn which attempts have failed in one batch of which no job is done yet."""
        waiting = [
            batch
            for batch in self._without_done()
            if now - batch.looked >= _LOOK_PART * (now - batch.row.created)
        ]
        if not waiting:
            return
        followed = min(waiting, key=lambda batch: batch.looked)
        followed.looked = now
        batch = followed.row
        if batch.project_batch_id is None:
            return
        try:
            jobs = unfinished_jobs(self._context.project.project, batch.project_batch_id)
        except RpcError as error:
            log.debug("Attempts of batch %s cannot be looked at: %s", batch.name, error)
            return
        on_project = self._jobs.jobs_of(batch.id, "queued", "running")
        if on_project and any(job.failed_attempts for job in jobs):
            image = _failures.image_of(on_project[0])
            jobs = [replace(job, image=image) for job in jobs]
        followed.attempts = attempts_words(jobs, none_is_done=True)

    def _fail(self) -> None:
        """Hold the jobs that are in error; those for which there is no time now wait."""
        todo: list[tuple[_Followed, JobRow]] = []
        for batch in self._batches.values():
            if batch.failing:
                jobs = {job.job_name: job for job in self._on_project(batch)}
                batch.failing.intersection_update(name for name in jobs if name is not None)
                todo += [(batch, jobs[name]) for name in sorted(batch.failing)]
        if not todo:
            return
        until = time.monotonic() + _FAILURE_TIME
        stop = threading.Event()

        def fail(item: tuple[_Followed, JobRow]) -> bool:
            if self._context.stopping.is_set() or time.monotonic() > until:
                stop.set()
                return False
            return _failures.fail(self._context, item[1])

        for (batch, job), over in in_parallel(
            fail, todo, threads=_FAILURE_THREADS, name="failures", stop=stop
        ):
            # The rest is asked about again, or is no longer in error, which the next poll tells.
            if over:
                batch.failing.discard(job.job_name or "")
                self._changed = True
        self._context.wake()


def _groups(batches: Iterable[_Followed]) -> Iterator[list[_Followed]]:
    """Yield the batches for each request; those that made trouble come last, one by one."""

    def kind(batch: _Followed) -> tuple[bool, bool]:
        return batch.alone, batch.since == _EVERYTHING

    def weight(batch: _Followed) -> int:
        return batch.alive if batch.since == _EVERYTHING else 0

    for (alone, _), alike in groupby(sorted(batches, key=kind), kind):
        yield from in_parts(alike, weight, _JOBS_PER_QUERY, 1 if alone else _BATCHES_PER_QUERY)


def _is_time(server_time: str) -> bool:
    try:
        return math.isfinite(float(server_time))
    except ValueError:
        return False


def _culprit(error: RpcError, group: Sequence[_Followed]) -> _Followed | None:
    """Return the batch that the project refuses, if that is certain."""
    if not isinstance(error, NotFound | NotOwner):
        return None
    named = [batch for batch in group if error.named == batch.row.name]
    return named[0] if len(named) == 1 else None
