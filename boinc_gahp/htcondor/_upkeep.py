"""What is done now and then: leases are renewed, and once jobs end, they are aborted and retired.

All of it is in the ledger, and may be done twice: an abort or a retirement that was carried out but
not noted is repeated, which does no harm (``web-rpcs.rst``, "Aborting and retiring"). A job that is
not aborted, or a batch that is not retired, does not delay the others.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.errors import NotFound, PermissionDenied, RpcError
from boinc_gahp.htcondor._context import FAULT, going, is_ahead
from boinc_gahp.htcondor._sending_action import REFUSAL_FINAL
from boinc_gahp.submit.control import abort_each, retire_batch, set_lease
from boinc_gahp.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from boinc_gahp.errors import ProjectError
    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.ledger.rows import BatchRow, JobRow

log = logging.getLogger("boinc_gahp.htcondor")

#: Seconds between checks for leases that run out; with short leases, how often one is checked.
_EVERY = 60.0
_PART = 8.0
#: A lease is renewed after this many seconds of it; a short one after half of it.
_USED = 86400.0
#: Jobs that are aborted before the ledger notes it: 1,000 take 0.5 s (``web-rpcs.rst``, "Timings").
_JOBS_PER_ABORT = 1_000
#: Seconds after which a batch is retired again. If somebody lists batches just at the first time,
#: on the project's web site for example, that may write the batch's older state back
#: (``web-rpcs.rst``, "Batch states"); a list takes seconds. If this process has ended by then, the
#: batch's lease ends it.
RETIRE_AGAIN = 60.0
#: States of a batch in which it is certain whether its jobs are on the project.
_CERTAIN = ("submitted", "ended", "retired")


class PeriodicTask:
    """One kind of work, for one thread at a time; other threads may do other kinds.

    Times are seconds since the epoch.

    Args:
        name: the name of the kind.
        due: given the time, returns when there is something to do; a time in the past (0) is now.
            Only uses the ledger.
        work: does everything that is due at the given time, while its second argument returns true;
            work that cannot be done now stays pending. Raises LedgerError.
        every: returns how many seconds apart it is done, at least.

    Attributes:
        next: the time before which it is not done again.
    """

    def __init__(
        self,
        name: str,
        due: Callable[[float], float],
        work: Callable[[float, Callable[[], bool]], None],
        every: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.name = name
        self._due = due
        self._work = work
        self._every = every
        self.next = -math.inf

    def due(self, now: float) -> float:
        """Return when to do it; a time in the past is now."""
        waits = is_ahead(self.next, now, self._every() + FAULT)
        return max(self.next if waits else 0.0, self._due(now))

    def run(self, now: float, goes_on: Callable[[], bool]) -> None:
        """Do what is due, while ``goes_on`` returns true; raises LedgerError."""
        self.next = now + self._every()
        self._work(now, goes_on)


def check_interval(lease: float) -> float:
    """Return seconds between checks whether leases of ``lease`` seconds have to be renewed."""
    return min(_EVERY, lease / _PART)


class Upkeep:
    """Renews leases, and ends jobs and batches on a project.

    Args:
        context: what the account's manager shares with its parts.
        is_sending: tells whether a batch, by its id, is being sent: it may have been made on the
            project only now, so it is left alone.

    Attributes:
        tasks: what there is to do.
    """

    def __init__(
        self, context: AccountContext, is_sending: Callable[[int], bool] = lambda _: False
    ) -> None:
        self._context = context
        self._is_sending = is_sending
        self._jobs = context.jobs
        self._owner = context.owner
        self._pauses = context.pauses
        self._overdue: set[int] = set()
        #: Names of retired batches, with the time to retire them again; in the order of time.
        self._second_retirements: deque[tuple[float, str]] = deque()
        self.tasks = (
            # Even if other work fails.
            PeriodicTask(
                "lease",
                lambda now: self._pauses.wait(None, now),
                self.renew,
                lambda: check_interval(context.htcondor.lease),
            ),
            PeriodicTask("abort", self._aborts_due, self.abort),
            PeriodicTask("retire", self._retirements_due, self.retire),
            PeriodicTask(
                "published files",
                lambda now: self._pauses.wait(None, now) if context.project.published else math.inf,
                lambda _now, _goes_on: context.project.tidy(),
                lambda: _EVERY,
            ),
        )

    # -- what there is to do, by the ledger alone

    def close_overdue(self, now: float) -> float | None:
        """Complete jobs whose batch was not retired in time: they wait no longer.

        Returns:
            The time at which the next of them will have waited long enough, or None.
        """
        times = []
        wait = self._context.htcondor.retire_wait
        for batch in self._jobs.batches(*self._owner, "ended"):
            if batch.id in self._overdue:
                continue
            waiting = self._jobs.jobs_of(batch.id, "fetched", described=False)
            end = min((job.changed for job in waiting), default=now - wait) + wait
            if is_ahead(end, now, wait):
                times.append(end)
                continue
            if waiting:
                log.warning(
                    "Batch %s is not retired yet: its jobs are completed now, it is retired later",
                    batch.name,
                )
                self._jobs.close_batch(batch.id, retired=False)
            self._overdue.add(batch.id)
        return min(times, default=None)

    def _aborts_due(self, now: float) -> float:
        return min(
            (self._pauses.wait(_abort_of(one), now) for one in self._aborts()), default=math.inf
        )

    def _retirements_due(self, now: float) -> float:
        times = [
            self._pauses.wait(_retirement_of(batch), now, batch.not_before)
            for batch in self._to_retire()
        ]
        if self._second_retirements:
            again = self._second_retirements[0][0]
            waits = again if is_ahead(again, now, RETIRE_AGAIN) else 0.0
            times.append(max(waits, self._pauses.wait(None, now)))
        return min(times, default=math.inf)

    # -- aborts

    def abort(self, now: float, goes_on: Callable[[], bool]) -> None:
        """Abort the jobs that HTCondor has cancelled, if it is certain what the project has.

        A request that the project chokes on is divided until the job to blame is alone.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        clock = going(now)
        if self._pauses.wait(None, now):
            return
        due = [one for one in self._aborts() if not self._pauses.wait(_abort_of(one), now)]
        todo = [due[at : at + _JOBS_PER_ABORT] for at in range(0, len(due), _JOBS_PER_ABORT)]
        while todo and goes_on():
            jobs = todo.pop(0)
            names = {str(one.job_name): one for one in jobs}
            try:
                refused = abort_each(self._context.project, list(names))
            except RpcError as error:
                if self._pauses.is_of_project(error, clock()):
                    return
                half = len(jobs) // 2
                if half:
                    todo[:0] = [jobs[:half], jobs[half:]]
                else:
                    self._put_off(jobs[0], error, clock())
                continue
            self._pauses.succeeded()
            left = {name for name, error in refused.items() if self._is_left(names[name], error)}
            for name in left:
                self._put_off(names[name], refused[name], clock())
            over = [one for one in jobs if one.job_name not in left]
            for one in over:
                self._pauses.forget(_abort_of(one))
            self._jobs.abort_done([one.id for one in over])
            log.info("Aborted on %s: %s", self._context.url, count(len(over), "job"))

    def _put_off(self, job: JobRow, error: RpcError, now: float) -> None:
        """Try to abort a job again later."""
        key = _abort_of(job)
        level = logging.DEBUG if self._pauses.lasted(key) else logging.WARNING
        log.log(level, "Job %s is still to be aborted: %s", job.job_name, error)
        self._pauses.later(key, now)
        self._jobs.job_trouble([job.id], str(error))

    def _is_left(self, job: JobRow, error: ProjectError) -> bool:
        """Tell whether an abort that the project has refused stays pending.

        A job that the project does not have was never made, and one that it will not abort is over.
        Errors that its database may have caused are retried: if the row of the job's batch is not
        found, the error is "not owner", too. After a day the refusal counts as final.
        """
        lasted = self._pauses.lasted(_abort_of(job))
        if error.passes or (isinstance(error, PermissionDenied) and lasted < REFUSAL_FINAL):
            return True
        log.info("Job %s was not aborted, and counts as ended: %s", job.job_name, error)
        return False

    # -- retirements

    def retire(self, now: float, goes_on: Callable[[], bool]) -> None:
        """Retire the batches whose jobs have all ended; if that fails now, it stays pending.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        clock = going(now)
        # Batches that a job waits for come first.
        for batch in sorted(self._to_retire(), key=lambda batch: batch.id in self._overdue):
            if not goes_on() or self._pauses.wait(None, now):
                return
            if not self._pauses.wait(_retirement_of(batch), now, batch.not_before):
                self._retire(batch, now, clock())
        while self._second_retirements and goes_on():
            at, name = self._second_retirements[0]
            if is_ahead(at, now, RETIRE_AGAIN):
                return
            self._second_retirements.popleft()
            try:
                retire_batch(self._context.project, name)
            except RpcError as error:
                log.info("Batch %s cannot be retired a second time: %s", name, error)

    def _retire(self, batch: BatchRow, now: float, later: float) -> None:
        key = _retirement_of(batch)
        retire = partial(retire_batch, self._context.project, batch.name)
        error = self._ask("retire", key, batch, later, retire)
        if error is not None:
            self._jobs.postpone(batch.id, self._pauses.until(key), str(error))
            return
        self._jobs.close_batch(batch.id, retired=True)
        self._overdue.discard(batch.id)
        self._second_retirements.append((now + RETIRE_AGAIN, batch.name))
        log.info("Batch %s is retired", batch.name)

    def _to_retire(self) -> Sequence[BatchRow]:
        """Return the batches to retire that are left alone by aborts and by the sender."""
        aborting = {one.batch_id for one in self._aborts()}
        return [
            batch
            for batch in self._jobs.batches(*self._owner, "ended")
            if batch.id not in aborting and not self._is_sending(batch.id)
        ]

    # -- leases

    def renew(self, now: float, goes_on: Callable[[], bool]) -> None:
        """Renew the leases of batches with jobs that HTCondor has asked about recently.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        clock = going(now)
        lease = self._context.htcondor.lease
        for batch in self._jobs.leases(*self._owner, now, lease - min(_USED, lease / 2), lease):
            key = ("lease", batch.id)
            if not goes_on():
                return
            renew = partial(set_lease, self._context.project, batch.name, now + lease)
            # Jobs of a batch that the project does not have are lost: the follower finds that out.
            if self._pauses.wait(key, now):
                continue
            if self._ask("renew the lease", key, batch, clock(), renew) is None:
                self._jobs.leased(batch.id, now + lease)

    def _ask(
        self, what: str, key: Hashable, batch: BatchRow, now: float, request: Callable[[], object]
    ) -> RpcError | None:
        """Make a request about a batch; return why it has to be repeated, which then waits.

        There is nothing to do for a batch that the project does not have.
        """
        try:
            request()
        except NotFound as error:
            log.info("Batch %s: nothing to %s: %s", batch.name, what, error)
        except RpcError as error:
            log.warning("Batch %s: still to %s: %s", batch.name, what, error)
            self._pauses.failed(key, error, now)
            return error
        self._pauses.succeeded(key)
        return None

    def _aborts(self) -> Sequence[JobRow]:
        """Return the pending aborts that can be done now."""
        return self._jobs.pending_aborts(*self._owner, *_CERTAIN)


def _abort_of(job: JobRow) -> tuple[str, int]:
    return "abort", job.id


def _retirement_of(batch: BatchRow) -> tuple[str, int]:
    return "retire", batch.id
