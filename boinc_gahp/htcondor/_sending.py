"""Waiting jobs become batches, and batches become workunits on the project: each job exactly once.

Why a job never has a second workunit that lives:

1. A job's name on the project is its batch's name (128 random bits) and a number. It is in the
   ledger before anything is sent. A project accepts a name only once, for ever; so a request that
   is repeated under the same names, after a crash or by a retry, makes nothing twice
   (:mod:`boinc_gahp.submit.engine`).
2. Right before each submit_batch the ledger notes that the batch is ``sent``, and with exactly
   which jobs (:meth:`JobLedger.about_to_send`): a later request for it has the same names, even if
   jobs were cancelled or put on hold in the meantime.
3. A job gets another name only when its batch is over. A ``planned`` batch was never sent: at most
   an empty batch is on the project. Any other batch is ``giving_up`` first, and that ends when the
   project says that the batch is aborted (:mod:`._rollback`). The new name and the end of the old
   batch are one change of the ledger.
4. A job that HTCondor may submit again (it is on hold, or cancelled) is never in a batch that may
   still be sent: only jobs of ``planned`` batches, which they leave, and of aborted batches are
   put on hold; for cancelled jobs an abort is pending.
5. One process at a time does all of this, the one with the manager's lock; one of its threads works
   on a batch.

No job is put on hold because the project cannot be reached or answers nonsense: such a batch is
tried again, less and less often, with the same names.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    OF_ALL,
    GahpError,
    LedgerError,
    ProtocolError,
    QuotaExceeded,
    RpcError,
    StagingError,
    TransportError,
)
from boinc_gahp.htcondor._batching import BatchSizes, due_batches, request_of
from boinc_gahp.htcondor._context import NoLongerWanted
from boinc_gahp.htcondor._failures import IS_LOST
from boinc_gahp.htcondor._ledger_journal import LedgerJournal
from boinc_gahp.htcondor._rollback import BatchRollback, new_name
from boinc_gahp.htcondor._sending_action import (
    Action,
    Attempt,
    action_after,
    blamed,
    hold_for,
)
from boinc_gahp.submit.abort import ABORT_AGAIN
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.journal import SubmitState
from boinc_gahp.submit.validate import BatchValidator
from boinc_gahp.text import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.ledger.rows import BatchRow, Hold, JobRow
    from boinc_gahp.submit.types import SubmitRequest

log = logging.getLogger("boinc_gahp.htcondor")

#: The key of the pauses that new batches wait for.
_PLANS = ("plan", 0)


class Sender:
    """Makes batches of waiting jobs and submits them; the threads of one manager share it.

    Attributes:
        rollback: goes on with batches that are ``giving_up``.
        sizes: what is known about the sizes of batches.
    """

    def __init__(self, context: AccountContext) -> None:
        self._context = context
        self._jobs = context.jobs
        self._pauses = context.pauses
        self.rollback = BatchRollback(context)
        #: Batches that failed since one was last sent.
        self._failed: set[int] = set()
        #: The latest failed attempts to send batches.
        self._attempts: dict[int, Attempt] = {}
        #: Since when each batch gets errors that do not go away by waiting.
        self._refused: dict[int, float] = {}
        self.sizes = BatchSizes(context)

    # -- batches are made

    def plan(self, now: float) -> float | None:
        """Make the batches that are due; this only uses the ledger.

        While the project cannot be used, or after several batches in a row could not be sent, jobs
        keep waiting, so that a night's jobs go in few batches.

        Args:
            now: seconds since the epoch.

        Returns:
            When to look again, None if nothing waits.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        until = self._pauses.wait(_PLANS, now)
        if until:
            return until
        waiting = self._jobs.waiting(*self._context.owner)
        htcondor = self._context.htcondor
        groups, next_ = due_batches(waiting, now, htcondor, self.sizes.most_bytes)
        for group in groups:
            batch = self._jobs.plan(
                *self._context.owner,
                new_name(),
                group[0].app_name,
                group[0].group_key,
                [job.id for job in group],
                now + htcondor.lease,
            )
            if batch is not None:
                log.info(
                    "Batch %s: %s for %s", batch.name, count(len(group), "job"), self._context.url
                )
        return next_

    # -- batches are sent

    def work(self, batch_id: int) -> None:
        """Do what a batch needs in its state: submit it, or make sure that it is over.

        If that cannot be done now, it is put off: the ledger has until when and why.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        steps = {"planned": self._send, "sent": self._send, "giving_up": self.rollback.go_on}
        # It may have changed since this work was queued.
        while not self._context.stopping.is_set() and (batch := self._jobs.batch(batch_id)):
            step = steps.get(batch.state)
            try:
                if step is None or not step(batch):
                    return
            except LedgerError:
                self._attempts.pop(batch.id, None)  # it is not known how far this attempt came
                raise
            except GahpError as error:
                log.warning("Batch %s: %s", batch.name, error)
                self._put_off(batch, error)
                return
            except Exception as error:  # the manager has other batches
                self._attempts.pop(batch.id, None)
                if not self._context.stopping.is_set():  # otherwise its connections were closed
                    log.exception("work on batch %s failed", batch.name)
                    self._put_off(batch, GahpError(f"a fault of this program: {error!r}"))
                return

    def _send(self, batch: BatchRow) -> bool:
        """Submit the batch; return whether there is more to do for it at once."""
        # Jobs of a batch that was sent have ended since, and may be on the project all the same.
        jobs = self._jobs.jobs_of(batch.id, *(["sending"] if batch.state == "planned" else []))
        if batch.state == "planned":
            if not jobs:
                self._jobs.drop_from_batch(batch.id)
                return False
            hold = self.rollback.hold_untried(batch)
            if hold is not None:
                self._hold_all(batch, jobs, hold)
                return False
        elif not any(job.state == "sending" for job in jobs):
            self._jobs.begin_abort(batch.id, time.time() + ABORT_AGAIN)
            return False
        return self._submit(batch, jobs)

    def _submit(self, batch: BatchRow, jobs: Sequence[JobRow]) -> bool:
        journal = LedgerJournal(self._context, batch, jobs, self._sending(batch))
        request: SubmitRequest | None = None
        try:
            request = request_of(
                self._context.project, batch, jobs, self._context.htcondor.lease, self._keep_going
            )
            submit(self._context.project, request, journal)
        except NoLongerWanted as stopped:
            return stopped.has_changed
        except LedgerError:
            raise
        except GahpError as error:
            log.warning("Batch %s: %s", batch.name, error)
            attempt = self._attempt(batch, len(jobs), journal.sending, error)
            if request is None and attempt.sending.sent:
                # Jobs that are on the project do not need their files any more; whether they are
                # must be known before the batch is given up.
                with suppress(*IS_LOST):
                    if self._is_there(batch, jobs):
                        return False
            return self._after(batch, jobs, attempt, request, error)
        self._is_submitted(batch, len(jobs))
        now = None if journal.sending.unclear else self._jobs.batch(batch.id)
        if now is not None and now.state == "giving_up":
            # Its last job was cancelled while it was being sent.
            self._jobs.begin_abort(batch.id, time.time())
        return False

    def _keep_going(self) -> None:
        if self._context.stopping.is_set():
            raise NoLongerWanted

    def _sending(self, batch: BatchRow) -> SubmitState:
        """Return how far the batch is on the project, as far as this process knows."""
        before = self._attempts.get(batch.id)
        if before is not None:
            return before.sending
        sent = batch.state == "sent"
        return SubmitState(batch.project_batch_id, sent=sent, unclear=sent)

    def _is_submitted(self, batch: BatchRow, jobs: int) -> None:
        log.info("Batch %s is submitted: %s", batch.name, count(jobs, "job"))
        self._forget(batch)
        self._failed.clear()
        if self._pauses.succeeded(_PLANS):
            self._context.wake()  # others wait for it

    def _forget(self, batch: BatchRow) -> None:
        self._pauses.forget(_work_on(batch))
        self._failed.discard(batch.id)
        self.sizes.forget(batch)
        self._attempts.pop(batch.id, None)
        self._refused.pop(batch.id, None)

    # -- what went wrong

    def _attempt(
        self, batch: BatchRow, jobs: int, sending: SubmitState, error: GahpError
    ) -> Attempt:
        """Return how the batch stands after ``error``."""
        before = self._attempts.get(batch.id)
        deaths = 0 if before is None else before.deaths
        if isinstance(error, ProtocolError) and error.php_fatal and error.rpc == "submit_batch":
            deaths += 1
        attempt = self._attempts[batch.id] = Attempt(
            sending,
            jobs,
            is_part="/" in batch.group_key,
            deaths=deaths,
            lasted=self._lasted(batch, error),
            is_beyond_limit=isinstance(error, QuotaExceeded) and self._is_beyond_limit(),
            is_about_generated_file=isinstance(error, StagingError)
            and error.path is not None
            and self._context.project.made.is_made(error.path),
        )
        return attempt

    def _lasted(self, batch: BatchRow, error: GahpError) -> float:
        """Return for how many seconds waiting has not helped, although the project answers."""
        concerns_all = error.concerns in OF_ALL or isinstance(error, ProtocolError)
        if concerns_all or (isinstance(error, TransportError) and error.passes):
            self._refused.pop(batch.id, None)
            return 0.0
        now = time.monotonic()
        return now - self._refused.setdefault(batch.id, now)

    def _is_beyond_limit(self) -> bool:
        """Tell whether the account has no job on the project that could end.

        Its other jobs may be from another submit node, so the project is asked.
        """
        if self._jobs.on_project(*self._context.owner):
            return False
        try:
            batches = self._context.project.cache.batches()
        except RpcError as error:
            log.info("It is not known which jobs fill the account's limit: %s", error)
            return False
        return all(batch.state.name != "IN_PROGRESS" for batch in batches)

    def _after(
        self,
        batch: BatchRow,
        jobs: Sequence[JobRow],
        attempt: Attempt,
        request: SubmitRequest | None,
        error: GahpError,
    ) -> bool:
        """Do what a failed submission requires; return whether to try again at once."""
        action = action_after(attempt, error)
        if action is Action.LATER:
            self._put_off(batch, error)
            return False
        sent = attempt.sending.sent
        if action is Action.HOLD_SOME and not sent:
            return self._hold_those_to_blame(batch, jobs, request, error)
        if action is Action.RENAME:
            if sent:
                with suppress(RpcError):
                    if self._is_there(batch, jobs):
                        return False
            # Not at once: other names may not help either.
            self._pauses.failed(_PLANS, error)
        elif action is Action.HALVE:
            self.sizes.learn(batch, jobs, error)
        self._forget(batch)
        if sent:
            return self.rollback.begin(batch, attempt, error)
        if action is Action.RENAME:
            self._jobs.drop_from_batch(batch.id)
        elif action is Action.HALVE:
            self.rollback.halve(batch, jobs, str(error))
        else:
            self._hold_all(batch, jobs, hold_for(error, batch))
        self._context.wake()
        return False

    def _is_there(self, batch: BatchRow, jobs: Sequence[JobRow]) -> bool:
        """Tell whether the batch has all its jobs, in whatever state it is now.

        A person, or the end of its lease, may have aborted or retired it on the project: the
        follower finds out what became of its jobs.

        Raises:
            RpcError: the batch cannot be looked at.
        """
        if batch.project_batch_id is None:
            return False
        names = self._context.project.cache.job_names(batch.project_batch_id)
        if set(names) != {job.job_name for job in jobs}:
            return False
        self._jobs.submitted(batch.id, batch.project_batch_id)
        self._is_submitted(batch, len(names))
        return True

    # -- holds

    def _hold_those_to_blame(
        self,
        batch: BatchRow,
        jobs: Sequence[JobRow],
        request: SubmitRequest | None,
        error: GahpError,
    ) -> bool:
        """Put the jobs that cannot be sent on hold; return whether others are left."""
        refused: Mapping[str, GahpError] = {}
        if request is not None:
            refused = BatchValidator(self._context.project, request).validation().refusals
        alone = Attempt(SubmitState(), 1)
        holds = {
            job.id: hold_for(why, batch)
            for job in jobs
            if (why := refused.get(str(job.job_name))) is not None
            and action_after(alone, why) is Action.HOLD_SOME
        }
        if not holds:
            holds = {job.id: hold_for(error, batch) for job in blamed(jobs, error)}
        alike: dict[Hold, list[int]] = {}
        for job_id, hold in holds.items():
            alike.setdefault(hold, []).append(job_id)
        for hold, job_ids in alike.items():
            self._jobs.hold(job_ids, hold)
        log.warning("Batch %s: %s on hold", batch.name, count(len(holds), "job"))
        if len(holds) < len(jobs):
            return True
        self._forget(batch)
        return False

    def _hold_all(self, batch: BatchRow, jobs: Sequence[JobRow], hold: Hold) -> None:
        """Put all jobs of a batch that was never sent on hold; the batch needs no abort."""
        log.warning("Batch %s: %s on hold: %s", batch.name, count(len(jobs), "job"), hold.reason)
        self._jobs.hold([job.id for job in jobs], hold)
        self._jobs.close_batch(batch.id, retired=True)

    # -- later, and smaller

    def _put_off(self, batch: BatchRow, trouble: GahpError) -> None:
        """Try what the batch needs again later."""
        if self._context.stopping.is_set():
            return  # that may be why it failed
        key = _work_on(batch)
        self._jobs.postpone(batch.id, self._pauses.failed(key, trouble), str(trouble))
        if batch.state == "giving_up":
            return
        self._failed.add(batch.id)
        if len(self._failed) > 1:
            # Several batches fail, so the cause is not in one of them: new ones would fail, too.
            self._pauses.later(_PLANS)


def _work_on(batch: BatchRow) -> tuple[str, int]:
    """Return the key of the pauses between attempts at what a batch needs."""
    return "roll back" if batch.state == "giving_up" else "send", batch.id
