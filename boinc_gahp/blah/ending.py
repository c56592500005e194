"""What is owed to a project once jobs end: aborts, retirements, leases.

All of it stands in the ledger, and may be done twice: an abort, a retirement or a lease that was
carried out and not noted is asked for again, and nothing comes of that (``web-rpcs.md``,
"Queries").
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from boinc_gahp.blah.patience import Patience, is_ahead, longest_pause
from boinc_gahp.blah.sending_verdict import is_of_database
from boinc_gahp.errors import (
    LedgerError,
    NotFound,
    PermissionDenied,
    ProjectDown,
    ProjectError,
    RpcError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp.blah.kept import Kept
    from boinc_gahp.ledger.jobs import BatchRow, OwedAbort

log = logging.getLogger("boinc_gahp.blah")

#: Jobs that are aborted before the ledger says so: 1,000 take 0.5 s (``web-rpcs.md``, "Timings").
_JOBS_PER_ABORT = 1_000
#: Seconds between looks for leases that run out.
_LEASES_EVERY = 60.0
#: Seconds between looks for what may be forgotten.
_PRUNE_EVERY = 3600.0
#: A lease is renewed when it has lost this much, in seconds.
_LEASE_USED = 86400.0
#: States of a batch whose jobs are certain to be on the project or not.
_CERTAIN = frozenset({"submitted", "ended", "retired"})


class Ender:
    """Pays what is owed to a project.

    :meth:`pay` is for one thread at a time, :meth:`close_overdue` and :meth:`due` for another.

    Args:
        kept: what keepers give to their parts.
        is_sending: tells whether somebody is at work on a batch, by its id, who may have made it
            on the project only now: it is let be.
    """

    def __init__(self, kept: Kept, is_sending: Callable[[int], bool] = lambda _: False) -> None:
        htcondor = kept.settings.htcondor
        self._kept = kept
        self._is_sending = is_sending
        self._jobs = kept.jobs
        self._owner = (kept.url, kept.account)
        self._pauses = (htcondor.poll_shortest, htcondor.poll_longest)
        self._longest_pause = longest_pause(htcondor)
        self._patience = Patience(*self._pauses)
        self._batch_patience: dict[int, Patience] = {}
        self._unwaited: set[int] = set()
        self._next_leases = 0.0
        self._next_prune = 0.0
        self._answers = False

    # -- the look at what there is to do: only the ledger

    def close_overdue(self, now: float) -> float | None:
        """Let jobs be done whose batch was not retired in time: they wait no longer.

        Returns:
            When the next of them will have waited long enough, or None.
        """
        next_: float | None = None
        wait = self._kept.settings.htcondor.retire_wait
        for batch in self._jobs.batches(*self._owner, "ended"):
            if batch.id in self._unwaited:
                continue
            waiting = self._jobs.jobs_of(batch.id, "fetched")
            end = min((job.changed for job in waiting), default=now - wait) + wait
            if is_ahead(end, now, wait):
                next_ = end if next_ is None else min(next_, end)
                continue
            if waiting:
                log.warning("Batch %s is not retired yet: that stays owed", batch.name)
                self._jobs.close_batch(batch.id, retired=False)
            self._unwaited.add(batch.id)
        return next_

    def due(self, now: float) -> float:
        """Return when :meth:`pay` has something to do; in the past, if it has now."""
        times = [
            self._waits_until(self._next_prune, now, _PRUNE_EVERY),
            self._asks_at(now, self._next_leases),
        ]
        if self._aborts():
            times.append(self._asks_at(now))
        times += [
            self._asks_at(now, batch.not_before)
            for batch in self._jobs.batches(*self._owner, "ended")
            if not self._is_sending(batch.id)
        ]
        return min(times)

    # -- the work

    def pay(self, now: float, until: float | None = None) -> None:
        """Do all that is due; what cannot be done now stays owed.

        Args:
            now: seconds since the epoch.
            until: begin nothing after this ``time.monotonic()``.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """

        def goes_on() -> bool:
            late = until is not None and time.monotonic() > until
            return not (late or self._kept.stopping.is_set())

        if self._asks_at(now) <= now and goes_on() and self.abort_owed():
            owing = {owed.batch_id for owed in self._aborts()}
            ended = self._jobs.batches(*self._owner, "ended")
            # Those first that a job waits for.
            for batch in sorted(ended, key=lambda batch: batch.id in self._unwaited):
                waits = self._asks_at(now, batch.not_before) > now
                if waits or batch.id in owing or self._is_sending(batch.id):
                    continue
                if not goes_on() or not self.retire(batch):
                    break
        if self._asks_at(now, self._next_leases) <= now and goes_on():
            self.renew_leases(now)
        if self._waits_until(self._next_prune, now, _PRUNE_EVERY) <= now:
            self.prune(now)

    def abort_owed(self) -> bool:
        """Abort the jobs that HTCondor has cancelled, where it is certain what the project has.

        Returns:
            Whether the project could be asked.
        """
        while owed := self._aborts()[:_JOBS_PER_ABORT]:
            names = [one.job_name for one in owed]
            try:
                self._kept.bridge.abort_jobs(names, remember=False)
            except (ProjectDown, PermissionDenied) as error:
                return self._trouble(f"{len(names)} jobs are still to be aborted", error)
            except ProjectError as error:
                if is_of_database(error):
                    return self._trouble(f"{len(names)} jobs are still to be aborted", error)
                # The others were aborted. One that the project does not have never came to be, and
                # one that it will not abort is over.
                log.info("What was not aborted counts as ended: %s", error)
            except RpcError as error:
                return self._trouble(f"{len(names)} jobs are still to be aborted", error)
            self._well()
            self._jobs.abort_done([one.job_id for one in owed])
            log.info("%d jobs were aborted on %s", len(names), self._kept.url)
        return True

    def retire(self, batch: BatchRow) -> bool:
        """Retire a batch whose jobs have all ended; if it cannot be now, that stays owed.

        Returns:
            Whether the project could be asked.
        """
        try:
            self._kept.bridge.retire_batch(batch.name)
        except NotFound:
            log.info("Batch %s is not on the project: nothing is to be retired", batch.name)
        except RpcError as error:
            if isinstance(error, ProjectError) and not isinstance(
                error, ProjectDown | PermissionDenied
            ):
                own = self._batch_patience.setdefault(batch.id, Patience(*self._pauses))
                again = own.failed(time.time())
                log.warning("Batch %s is still to be retired: %s", batch.name, error)
            else:
                self._trouble(f"batch {batch.name} is still to be retired", error)
                again = self._patience.until
            self._jobs.postpone(batch.id, again, str(error))
            return self._patience.until == 0
        self._well()
        self._jobs.close_batch(batch.id, retired=True)
        self._batch_patience.pop(batch.id, None)
        self._unwaited.discard(batch.id)
        log.info("Batch %s is retired", batch.name)
        return True

    def renew_leases(self, now: float) -> None:
        """Renew the leases of batches with jobs that HTCondor has asked about lately."""
        lease = self._kept.settings.htcondor.lease
        ahead = lease - min(_LEASE_USED, lease / 2)
        for batch in self._jobs.leases(*self._owner, now, ahead, lease):
            try:
                self._kept.bridge.set_lease(batch.name, now + lease)
            except (ProjectDown, PermissionDenied) as error:
                self._trouble("leases are still to be renewed", error)
                return
            except ProjectError as error:
                # Its jobs are lost, or were finished by hand: what follows them finds out.
                log.warning("The lease of batch %s is not renewed: %s", batch.name, error)
            except RpcError as error:
                self._trouble("leases are still to be renewed", error)
                return
            else:
                self._well()
            self._jobs.leased(batch.id, now + lease)
        self._next_leases = now + _LEASES_EVERY

    def prune(self, now: float) -> None:
        """Forget what ended long ago."""
        forgotten = self._jobs.prune(now - self._kept.settings.htcondor.history)
        if forgotten:
            log.info("%d jobs that ended long ago are forgotten", forgotten)
        self._next_prune = now + _PRUNE_EVERY

    # -- what they share

    def _asks_at(self, now: float, not_before: float = 0.0) -> float:
        """Return when the project may be asked for something put off; 0 if that is now."""
        longest = self._longest_pause
        return max(
            self._waits_until(self._patience.until, now, longest),
            self._waits_until(not_before, now, longest),
        )

    @staticmethod
    def _waits_until(at: float, now: float, longest: float) -> float:
        return at if is_ahead(at, now, longest) else 0.0

    def _aborts(self) -> Sequence[OwedAbort]:
        """Return the aborts that are owed and can be asked for."""
        owed = self._jobs.aborts_owed(*self._owner)
        return [one for one in owed if one.batch_state in _CERTAIN]

    def _trouble(self, what: str, error: RpcError) -> bool:
        """Note that the project cannot be asked; return False."""
        self._patience.failed(time.time())
        self._answers = False
        log.warning("%s: %s", what[0].upper() + what[1:], error)
        self._tell(lambda: self._jobs.project_trouble(*self._owner, str(error)))
        return False

    def _well(self) -> None:
        self._patience.succeeded()
        if not self._answers:
            self._answers = True
            self._tell(lambda: self._jobs.project_trouble(*self._owner, None))

    def _tell(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except LedgerError as error:
            log.warning("What is wrong with %s is not in the ledger: %s", self._kept.url, error)
