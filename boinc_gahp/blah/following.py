"""Follows jobs on a project: one background poll for all jobs of an owner.

A poll asks only for what has changed since the last one, where that is known (min_mod_time; the
bridge sees to it that nothing is lost, ``web-rpcs.md``, "Queries"). For a batch that is new to this
process, and for all of them every ``poll_all`` seconds, it asks for everything.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from boinc_gahp.blah import failures
from boinc_gahp.blah.patience import Patience
from boinc_gahp.bridge.parallel import in_parallel
from boinc_gahp.errors import (
    NotFound,
    PermissionDenied,
    ProtocolError,
    RpcError,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boinc_gahp.blah.kept import Kept
    from boinc_gahp.bridge import BatchLook
    from boinc_gahp.ledger.jobs import BatchRow, JobRow

log = logging.getLogger("boinc_gahp.blah")

#: Batches in one request, and jobs in them where all are asked for: 10,000 take 1.4 s and 1 MB
#: (``web-rpcs.md``, "Timings").
_BATCHES_PER_QUERY = 100
_JOBS_PER_QUERY = 20_000
#: While nothing changes each pause is longer by this factor.
_SLOWER = 1.5
#: Failed jobs are asked about by so many threads, and for so many seconds of a poll.
_ASKERS = 4
_ASK_FOR = 30.0

_EVERYTHING = "0"
_STATES: dict[str, Literal["queued", "running", "finished"]] = {
    "UNSENT": "queued",
    "QUEUED": "queued",
    "IN_PROGRESS": "running",
    "DONE": "finished",
}
_ERROR = "ERROR"


@dataclass(slots=True)
class _Followed:
    """A batch, and what this process knows of it.

    Attributes:
        alive: how many of its jobs are.
        since: server_time of its last answer; :data:`_EVERYTHING` to ask for all of its jobs.
        words: the status words of its jobs that are in the ledger by now.
        failing: its jobs in error whose failure is not in the ledger yet.
        alone: it has brought a request to fail, so it is asked for by its id.
    """

    row: BatchRow
    alive: int = 0
    since: str = _EVERYTHING
    words: dict[str, str] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    alone: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the project may have news of it."""
        return self.since == _EVERYTHING or any(word != "DONE" for word in self.words.values())


class Follower:
    """Asks a project about an owner's jobs, and writes what it says to the ledger.

    For one thread at a time.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._jobs = kept.jobs
        htcondor = kept.settings.htcondor
        self._shortest = htcondor.poll_shortest
        self._longest = max(htcondor.poll_shortest, htcondor.poll_longest)
        self._poll_all = htcondor.poll_all
        self._patience = Patience(self._shortest, self._longest)
        self._pace = self._shortest
        self._all_at = 0.0
        self._batches: dict[int, _Followed] = {}
        self._changed = False
        self._said = ""
        self._odd: set[str] = set()

    def poll(self, now: float) -> float:
        """Ask the project about all jobs that it has; return when to ask next.

        Both times are seconds since the epoch. The pause is ``poll_shortest`` after any news (a
        batch that is new is one), and grows to ``poll_longest`` while there are none.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        began = time.monotonic()
        self._changed = False
        self._look_for_batches()
        if now >= self._all_at or self._all_at > now + self._poll_all:
            self._all_at = now + self._poll_all
            for batch in self._batches.values():
                batch.since, batch.alone = _EVERYTHING, False
        trouble: RpcError | None = None
        asked = False
        for group in _groups(batch for batch in self._batches.values() if batch.is_open):
            if self._kept.stopping.is_set():
                break
            is_odd = group[0].alone
            try:
                asked = True
                self._ask(group)
            except RpcError as error:
                trouble = error
                if not (is_odd and _may_be_of_one(error)):
                    break
        if trouble is None or _may_be_of_one(trouble):
            self._fail()
        return self._next(now + time.monotonic() - began, trouble, asked=asked)

    def _next(self, now: float, trouble: RpcError | None, *, asked: bool) -> float:
        owner = (self._kept.url, self._kept.account)
        if trouble is not None:
            words = str(trouble)
            self._jobs.project_trouble(*owner, words)
            level = logging.DEBUG if words == self._said else logging.WARNING
            log.log(level, "Nothing new of the jobs on %s: %s", self._kept.url, words)
            self._said = words
            return self._patience.failed(now)
        if asked:
            self._jobs.project_trouble(*owner, None)
            self._said = ""
            if self._patience.succeeded():
                log.info("%s answers again", self._kept.url)
        self._pace = self._shortest if self._changed else min(self._longest, self._pace * _SLOWER)
        return min(now + self._pace, max(now, self._all_at))

    # -- what to ask

    def _look_for_batches(self) -> None:
        alive = {
            batch.batch_id: batch.alive
            for batch in self._jobs.on_project(self._kept.url, self._kept.account)
        }
        for gone in self._batches.keys() - alive.keys():
            del self._batches[gone]
        for batch_id in alive.keys() - self._batches.keys():
            row = self._jobs.batch(batch_id)
            if row is not None and row.state == "submitted":
                self._batches[batch_id] = _Followed(row)
                self._changed = True
        for batch in self._batches.values():
            batch.alive = alive[batch.row.id]

    def _ask(self, group: Sequence[_Followed]) -> None:
        """Ask about batches that all want everything, or all only news.

        One batch that the project does not like fails the request for all, and so may one that it
        chokes on: then that one is looked at by its id.
        """
        since = min((batch.since for batch in group), key=float)
        if group[0].alone:
            self._look(group[0])
            return
        try:
            answer = self._kept.bridge.query_batches([batch.row.name for batch in group], since)
        except RpcError as error:
            culprit = _culprit(error, group)
            if culprit is not None:
                log.info("Looking at batch %s by its id: %s", culprit.row.name, error)
                culprit.alone = True
                rest = [batch for batch in group if batch is not culprit]
                if rest:
                    self._ask(rest)
                self._look(culprit)
            elif len(group) > 1 and _may_be_of_one(error):
                half = len(group) // 2
                self._ask(group[:half])
                self._ask(group[half:])
            else:
                # Should it be for this one, the others come first from now on.
                group[0].alone = _may_be_of_one(error)
                raise
            return
        for batch, pairs in zip(group, answer.batches, strict=True):
            everything = since == _EVERYTHING
            self._note(batch, pairs, everything=everything)
            if everything:
                self._look_for_lost(batch, frozenset(name for name, _ in pairs))
            batch.since = answer.server_time if _is_time(answer.server_time) else _EVERYTHING

    def _look(self, batch: _Followed) -> None:
        """Ask about a batch by its id; without one of that id all its jobs are lost."""
        # Twice: a project in trouble with its database may not find what it has.
        look = self._look_at(batch) or self._look_at(batch)
        if look is None:
            self._lose(batch, self._on_project(batch))
            return
        self._note(batch, look.jobs, everything=True)
        if look.complete:
            known = frozenset(name for name, _ in look.jobs)
            self._lose(batch, [job for job in self._on_project(batch) if job.job_name not in known])

    def _look_at(self, batch: _Followed) -> BatchLook | None:
        if batch.row.project_batch_id is None:
            return None
        try:
            return self._kept.bridge.look_at(batch.row.project_batch_id)
        except NotFound as error:
            if not failures.is_lost(error):
                raise
        except PermissionDenied as error:
            if not _is_foreign(error):
                raise
        return None

    # -- what it says

    def _note(
        self, batch: _Followed, pairs: Iterable[tuple[str, str]], *, everything: bool
    ) -> None:
        """Write to the ledger what is new, or everything, should it have missed something."""
        words = dict(pairs)
        news = {name: word for name, word in words.items() if batch.words.get(name) != word}
        told = words if everything else news
        changes = {name: _STATES[word] for name, word in told.items() if word in _STATES}
        if changes:
            self._jobs.statuses(batch.row.id, changes)
        batch.failing.difference_update(changes)
        batch.failing.update(name for name, word in told.items() if word == _ERROR)
        batch.words.update(news)
        self._changed = self._changed or bool(news)
        if "finished" in changes.values():
            self._kept.wake()
        for word in set(news.values()) - _STATES.keys() - {_ERROR} - self._odd:
            self._odd.add(word)
            log.warning("%s says %r of a job, which means nothing here", self._kept.url, word)

    def _on_project(self, batch: _Followed) -> list[JobRow]:
        return self._jobs.jobs_of(batch.row.id, "queued", "running")

    def _look_for_lost(self, batch: _Followed, named: frozenset[str]) -> None:
        """Look closely if the project's list of a batch's jobs lacks one."""
        if any(job.job_name not in named for job in self._on_project(batch)):
            self._look(batch)

    def _lose(self, batch: _Followed, jobs: list[JobRow]) -> None:
        if jobs:
            failures.lose(self._kept, jobs, batch.row)
            self._changed = True
            self._kept.wake()

    def _fail(self) -> None:
        """Hold the jobs that are in error; those for which the time does not do wait."""
        todo: list[tuple[_Followed, JobRow]] = []
        for batch in self._batches.values():
            if batch.failing:
                jobs = {job.job_name: job for job in self._on_project(batch)}
                batch.failing.intersection_update(name for name in jobs if name is not None)
                todo += [(batch, jobs[name]) for name in sorted(batch.failing)]
        if not todo:
            return
        until = time.monotonic() + _ASK_FOR
        stop = threading.Event()

        def fail(item: tuple[_Followed, JobRow]) -> bool:
            if self._kept.stopping.is_set() or time.monotonic() > until:
                stop.set()
                return False
            return failures.fail(self._kept, item[1])

        for (batch, job), over in in_parallel(
            fail, todo, threads=_ASKERS, name="failures", stop=stop
        ):
            # What is left is asked about again, or is no error by now and will be told.
            if over:
                batch.failing.discard(job.job_name or "")
                self._changed = True
        self._kept.wake()


def _groups(batches: Iterable[_Followed]) -> Iterator[list[_Followed]]:
    """Yield the batches of one request each; those that made trouble come last."""
    group: list[_Followed] = []
    weight = 0
    for batch in sorted(batches, key=lambda each: (each.alone, each.since == _EVERYTHING)):
        everything = batch.since == _EVERYTHING
        adds = batch.alive if everything else 0
        if group and (
            batch.alone
            or (group[0].since == _EVERYTHING) != everything
            or len(group) == _BATCHES_PER_QUERY
            or weight + adds > _JOBS_PER_QUERY
        ):
            yield group
            group, weight = [], 0
        group.append(batch)
        weight += adds
    if group:
        yield group


def _is_time(server_time: str) -> bool:
    try:
        return math.isfinite(float(server_time))
    except ValueError:
        return False


def _culprit(error: RpcError, group: Sequence[_Followed]) -> _Followed | None:
    """Return the batch that the project does not like, where that is sure."""
    if not isinstance(error, NotFound | PermissionDenied) or not _names_a_batch(error):
        return None
    if len(group) == 1:
        return group[0]
    named = [batch for batch in group if error.words.endswith(batch.row.name)]
    return named[0] if len(named) == 1 else None


def _names_a_batch(error: RpcError) -> bool:
    return isinstance(error, NotFound) or _is_foreign(error)


def _is_foreign(error: RpcError) -> bool:
    """Tell whether a batch is another account's: ``not owner of NAME``."""
    return isinstance(error, PermissionDenied) and "not owner" in error.words


def _may_be_of_one(error: RpcError) -> bool:
    """Tell whether it may be for one of several batches that a request failed."""
    return (
        _names_a_batch(error)
        or (isinstance(error, ProtocolError) and error.php_fatal)
        or (isinstance(error, TransportError) and error.status == 500)
    )
