"""The jobs whose outputs are to be fetched, and the threads that do it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from boinc_gahp.blah.fetching import Fetcher
from boinc_gahp.blah.workers import drop_past

if TYPE_CHECKING:
    from boinc_gahp.blah.kept import Kept
    from boinc_gahp.blah.workers import Guard, Workers
    from boinc_gahp.ledger.jobs import JobRow


class Fetches:
    """Has outputs fetched, some jobs' at a time; those that went wrong again after a while."""

    def __init__(self, kept: Kept, workers: Workers, guard: Guard) -> None:
        self._kept = kept
        self._workers = workers
        self._guard = guard
        self._fetcher = Fetcher(kept)
        self._next: deque[JobRow] = deque()
        #: Jobs in the queue or being fetched.
        self._taken: set[int] = set()
        #: By job: not to be fetched again before.
        self._later: dict[int, float] = {}

    def begin(self, now: float) -> float | None:
        """Have what can be fetched now fetched; each thread goes on with the next job by itself.

        Returns:
            When to look again, None if only news are to be waited for.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        drop_past(self._later, now, self._kept.longest_pause)
        limit = max(1, self._kept.htcondor.fetches)
        if len(self._next) < limit:
            # Before the ledger is read: a job that is over by then is not read any more.
            known = self._taken | self._later.keys()
            rows = self._kept.jobs.to_fetch(
                self._kept.url, self._kept.account, 4 * limit + len(known)
            )
            for job in rows:
                if job.id not in known:
                    self._taken.add(job.id)
                    self._next.append(job)
        wanted = len(self._next)
        for number in range(limit):
            if wanted and self._workers.start("fetch", number, self._work):
                wanted -= 1
        return min(self._later.values(), default=None)

    def _work(self) -> None:
        while not self._kept.stopping.is_set():
            try:
                job = self._next.popleft()
            except IndexError:
                return
            with self._guard("fetch outputs") as fetch:
                self._fetcher.fetch(job)
                fetch.at = self._again(job.id)
            if fetch.at:
                self._later[job.id] = fetch.at
            self._taken.discard(job.id)
            self._kept.wake()

    def _again(self, job_id: int) -> float:
        """Return when to fetch the job again; 0 if that is not needed."""
        job = self._kept.jobs.job(job_id)
        if job is None or job.state != "finished":
            self._kept.pauses.forget(("fetch", job_id))
            return 0.0
        return self._kept.pauses.later(("fetch", job_id))
