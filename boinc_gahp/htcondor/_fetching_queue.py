"""The jobs whose outputs are to be fetched, and the threads that do it."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from boinc_gahp.htcondor._fetching import Fetcher
from boinc_gahp.htcondor._retry_times import drop_past

if TYPE_CHECKING:
    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.htcondor._periodic_tasks import ErrorGuard
    from boinc_gahp.ledger.rows import JobRow
    from boinc_gahp.threads import Workers


class FetchQueue:
    """Has outputs fetched, several jobs at a time; failed fetches are repeated after a while.

    If a project cannot be asked about a batch, only one of its jobs is tried now and then, for all
    of them: otherwise they would occupy all threads, and other batches' jobs would not be fetched.
    """

    def __init__(self, context: AccountContext, workers: Workers, guard: ErrorGuard) -> None:
        self._context = context
        self._workers = workers
        self._guard = guard
        self._fetcher = Fetcher(context)
        self._next: deque[JobRow] = deque()
        #: Jobs in the queue or being fetched.
        self._taken: set[int] = set()
        #: By job: the time before which it is not fetched again.
        self._later: dict[int, float] = {}
        #: By batch that could not be asked about: the job that is tried, None while all wait.
        self._stuck: dict[int, int | None] = {}

    def begin(self, now: float) -> float | None:
        """Start the fetches that can be made now; each thread then goes on with the next job.

        Returns:
            When to look again, None if there is nothing to wait for but news.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        drop_past(self._later, now, self._context.longest_pause)
        limit = max(1, self._context.htcondor.fetches)
        next_ = [self._try_again(batch_id, now) for batch_id in list(self._stuck)]
        if len(self._next) < limit:
            self._take(4 * limit, without=list(self._stuck))
        wanted = len(self._next)
        for number in range(limit):
            if wanted and self._workers.start(self._work, ("fetch", number)):
                wanted -= 1
        return min([*self._later.values(), *filter(None, next_)], default=None)

    def _take(self, limit: int, **which: Any) -> JobRow | None:
        """Queue jobs that are not queued yet; return the first of them."""
        # Taken before the ledger is read: a job that has ended by then is not read any more.
        taken = self._taken | self._later.keys()
        context = self._context
        rows = context.jobs.to_fetch(context.url, context.account, limit + len(taken), **which)
        new = [job for job in rows if job.id not in taken]
        self._taken.update(job.id for job in new)
        self._next.extend(new)
        return new[0] if new else None

    def _try_again(self, batch_id: int, now: float) -> float:
        """Queue a job of a batch that could not be asked about, if it is time; else return when."""
        if self._stuck.get(batch_id) is not None:
            return 0.0
        at = self._context.pauses.wait(("fetch from", batch_id), now)
        if not at:
            job = self._take(1, of=batch_id)
            if job is None:
                self._stuck.pop(batch_id, None)
            else:
                self._stuck[batch_id] = job.id
        return at

    def _work(self) -> None:
        while not self._context.stopping.is_set():
            try:
                job = self._next.popleft()
            except IndexError:
                return
            batch_id = job.batch_id or 0
            if self._stuck.get(batch_id, job.id) == job.id:
                at = self._guard("fetch outputs", partial(self._fetch, job, batch_id))
                if at:
                    self._later[job.id] = at
                if self._stuck.get(batch_id) == job.id:
                    self._stuck[batch_id] = None
            self._taken.discard(job.id)
            self._context.wake()

    def _fetch(self, job: JobRow, batch_id: int) -> float:
        """Fetch a job's outputs; return when to fetch them again, 0 if that is not needed."""
        outcome = self._fetcher.fetch(job)
        self._note(batch_id, outcome == "stuck")
        if outcome == "perhaps later":
            row = self._context.jobs.job(job.id)
            if row is not None and row.state == "finished":
                return self._context.pauses.later(("fetch", job.id))
        if outcome != "stuck":
            self._context.pauses.forget(("fetch", job.id))
        return 0.0

    def _note(self, batch_id: int, is_stuck: bool) -> None:
        """Note whether the project could be asked about a batch."""
        key = ("fetch from", batch_id)
        if not is_stuck:
            self._stuck.pop(batch_id, None)
            self._context.pauses.forget(key)
        elif not self._context.pauses.wait(key, time.time()):
            # Jobs of a batch that fail at the same time count as one failure.
            self._stuck.setdefault(batch_id, None)
            self._context.pauses.later(key)
