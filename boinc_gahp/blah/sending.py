"""Waiting jobs become batches, and batches become workunits on the project: each job exactly once.

Why a job never has a second workunit that lives:

1. A job's name on the project is its batch's (128 random bits) and a number, and is in the ledger
   before anything is sent. A project takes a name once, for ever; so a request that is sent again
   under the same names, after a crash or by a retry, makes nothing twice
   (:mod:`boinc_gahp.bridge.submit`).
2. Right before each submit_batch the ledger says that the batch is ``sent``, and with exactly
   which jobs (:meth:`JobLedger.about_to_send`): a later request for it has the same names, whatever
   was cancelled or put on hold meanwhile.
3. A job gets another name only when its batch is over. A batch that is ``planned`` was never
   sent: at most an empty batch is on the project. Any other is ``giving_up`` first, and that ends
   with the project saying that the batch is aborted (:mod:`boinc_gahp.blah.giving_up`). The new
   name and the end of the old batch are one change of the ledger.
4. A job that HTCondor may submit once more (it is on hold, or cancelled) is in no batch that may
   still be sent: holds are only for jobs of ``planned`` batches, which leave them, and of batches
   that are aborted; an abort is owed for cancelled ones.
5. All of it is done by one process at a time, the one with the keeper's lock; a batch is worked on
   by one of its threads.

Nothing is put on hold because the project cannot be reached or answers nonsense: such a batch is
tried again, ever less often, with the same names.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from typing import TYPE_CHECKING

from boinc_gahp.blah.giving_up import ABORT_AGAIN, GivingUp
from boinc_gahp.blah.sending_attempt import Attempt
from boinc_gahp.blah.sending_plan import Bounds, ripe
from boinc_gahp.blah.sending_request import request_of
from boinc_gahp.blah.sending_sizes import Sizes
from boinc_gahp.blah.sending_verdict import (
    BELIEVED,
    Verdict,
    hold_for,
    is_about_project,
    verdict_on,
)
from boinc_gahp.errors import (
    GahpError,
    JobRefused,
    LedgerError,
    RpcError,
    StagingError,
)
from boinc_gahp.ledger.halving import Halving

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boinc_gahp.blah.kept import Kept
    from boinc_gahp.bridge import SubmitRequest
    from boinc_gahp.ledger.jobs import BatchRow, Hold, JobRow

log = logging.getLogger("boinc_gahp.blah")

#: Times that PHP may die of a batch's submit_batch before the batch's jobs are suspected.
_DEATHS = 3
#: What new batches wait for is kept under this.
_PLANS = ("plan", 0)


class _Stopped(Exception):
    """The batch is not to be sent (any more)."""


class _Changed(Exception):
    """Jobs of the batch were cancelled before anything was sent: it goes without them."""


class Sender:
    """Makes batches of waiting jobs and submits them; for one keeper, used by its threads."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._jobs = kept.jobs
        self._pauses = kept.pauses
        self._halving = Halving(kept.jobs.store)
        self._giving_up = GivingUp(kept, self._halving)
        #: Batches that could not be sent since one was.
        self._failed: set[int] = set()
        self._deaths: dict[int, int] = {}
        #: Batches that are ``sent``, of which every submit_batch was answered.
        self._clear: set[int] = set()
        #: Since when an error comes that no waiting helps against.
        self._stubborn: dict[int, float] = {}
        self._sizes = Sizes(kept)

    # -- batches are made

    def plan(self, now: float) -> float | None:
        """Make the batches that are due; only the ledger is asked.

        While the project cannot be worked with, or several batches in a row could not be sent, jobs
        wait where they are, so that a night's jobs go in few batches.

        Args:
            now: seconds since the epoch.

        Returns:
            When to look again, None if nothing waits.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        waiting = self._jobs.waiting(self._kept.url, self._kept.account)
        if not waiting:
            return None
        until = self._pauses.wait(_PLANS, now)
        if until:
            return until
        htcondor = self._kept.htcondor
        bounds = Bounds(
            htcondor.quiet,
            htcondor.longest_wait,
            htcondor.batch_jobs,
            self._sizes.batch_bytes,
            self._sizes.smaller,
        )
        groups, next_ = ripe(waiting, now, bounds)
        for group in groups:
            batch = self._jobs.plan(
                self._kept.url,
                self._kept.account,
                new_name(),
                group[0].app_name,
                group[0].together,
                [job.job_id for job in group],
                now + htcondor.lease,
            )
            if batch is not None:
                log.info("Batch %s: %d jobs for %s", batch.name, len(group), self._kept.url)
        return next_

    # -- batches are sent

    def slot_of(self, batch: BatchRow) -> str:
        """Return what work on a batch counts as; see :meth:`Sizes.slot_of`."""
        return self._sizes.slot_of(batch)

    def send(self, batch: BatchRow) -> None:
        """Submit a batch that is ``planned`` or ``sent``, or see what else has to become of it.

        Never raises. What cannot be done now is put off: the ledger says until when and why.
        """
        try:
            while self._send(batch):
                again = self._jobs.batch(batch.id)
                if again is None or again.state != "planned":
                    return
                batch = again
        except LedgerError as error:
            log.error("Batch %s has to wait: %s", batch.name, error)
        except Exception as error:  # the keeper has other batches
            if self._kept.stopping.is_set():
                return  # connections were closed under it
            log.exception("batch %s could not be sent", batch.name)
            self._put_off(batch, GahpError(f"a fault of this program: {error!r}"))

    def give_up(self, batch: BatchRow) -> None:
        """Go on with a batch that is ``giving_up``. Never raises; see :class:`GivingUp`."""
        self._giving_up.go_on(batch)

    def _send(self, batch: BatchRow) -> bool:
        """Submit the batch; return whether to do so once more, with what is left of it."""
        jobs = self._jobs_in_request(batch)
        if batch.state == "planned":
            if not jobs:
                self._jobs.drop_from_batch(batch.id)
                return False
            if self._giving_up.all_are_refused(batch):
                self._hold_all(batch, jobs, self._giving_up.hold_untried(batch))
                return False
        elif not any(job.state == "sending" for job in jobs):
            self._jobs.give_up(batch.id, time.time() + ABORT_AGAIN)
            return False
        return self._submit(batch, jobs)

    def _submit(self, batch: BatchRow, jobs: Sequence[JobRow]) -> bool:
        began_clear = batch.state == "planned" or batch.id in self._clear
        attempt = Attempt(batch, jobs, began_clear=began_clear)
        request: SubmitRequest | None = None
        try:
            request = request_of(
                batch,
                jobs,
                self._kept.htcondor.lease,
                lambda project_batch_id: self._about_to_send(attempt, project_batch_id),
                lambda: self._wanted(attempt),
            )
            project_batch_id = self._kept.bridge.submit(request)
        except (_Stopped, _Changed) as error:
            return isinstance(error, _Changed)
        except LedgerError:
            raise
        except GahpError as error:
            return self._after(attempt, request, error)
        self._is_submitted(batch, project_batch_id, len(jobs))
        self._see_whether_wanted(attempt, project_batch_id)
        return False

    def _see_whether_wanted(self, attempt: Attempt, project_batch_id: int) -> None:
        """Let a batch be aborted at once if its last job was cancelled while it was sent.

        That is possible if its one submit_batch has ended, which the batch's state tells.
        """
        batch = self._jobs.batch(attempt.batch.id)
        if batch is None or batch.state != "giving_up" or not attempt.is_single:
            return
        try:
            if self._kept.bridge.look_at(project_batch_id).complete:
                self._jobs.give_up(batch.id, time.time())
        except RpcError as error:
            log.info("Batch %s cannot be looked at: %s", batch.name, error)

    def _jobs_in_request(self, batch: BatchRow) -> list[JobRow]:
        """Return the jobs whose names the request has to have."""
        if batch.state == "planned":
            return self._jobs.jobs_of(batch.id, "sending")
        # What has ended since is on the project all the same, or may be.
        return self._jobs.jobs_of(batch.id)

    def _about_to_send(self, attempt: Attempt, project_batch_id: int) -> None:
        ids = attempt.ids.values()
        if self._kept.stopping.is_set():
            raise _Stopped
        said = self._jobs.about_to_send(attempt.batch.id, project_batch_id, frozenset(ids))
        if said != "go":
            raise _Changed if said == "changed" else _Stopped
        attempt.sends += 1

    def _wanted(self, attempt: Attempt) -> Iterable[str]:
        """Return the names of the jobs whose files are still needed."""
        batch = attempt.batch
        numbers = self._halving.sending(batch.id)
        if not numbers or self._kept.stopping.is_set():
            raise _Stopped
        if attempt.was_sent:
            return attempt.ids  # the request has to have them all
        return [f"{batch.name}-{number}" for number in numbers]

    def _is_submitted(self, batch: BatchRow, project_batch_id: int, jobs: int) -> None:
        self._jobs.submitted(batch.id, project_batch_id)
        log.info("Batch %s is submitted: %d jobs", batch.name, jobs)
        self._forget(batch)
        self._failed.clear()
        if self._pauses.succeeded(_PLANS):
            self._kept.wake()  # others wait for it

    def _forget(self, batch: BatchRow) -> None:
        self._pauses.forget(_sending_of(batch))
        self._failed.discard(batch.id)
        self._sizes.forget(batch)
        self._deaths.pop(batch.id, None)
        self._stubborn.pop(batch.id, None)
        self._clear.discard(batch.id)

    # -- what went wrong

    def _after(self, attempt: Attempt, request: SubmitRequest | None, error: GahpError) -> bool:
        """Do what a failed submission calls for; return whether to try once more at once."""
        batch, verdict = attempt.batch, verdict_on(error)
        log.warning("Batch %s: %s", batch.name, error)
        if verdict is Verdict.DIED:
            verdict = self._after_death(batch)
        if verdict is Verdict.LATER and self._has_lasted(attempt, error):
            verdict = Verdict.ALL
        if verdict is Verdict.QUOTA and not self._is_beyond_quota(attempt):
            verdict = Verdict.LATER
        if verdict is Verdict.LATER:
            if attempt.was_sent and not attempt.is_clear(error):
                self._clear.discard(batch.id)
            elif attempt.was_sent:
                self._clear.add(batch.id)
            self._put_off(batch, error)
            return False
        if attempt.was_sent:
            self._after_sent(attempt, verdict, error)
            return False
        if verdict is Verdict.JOBS:
            return self._hold_those_to_blame(attempt, request, error)
        if verdict is Verdict.SMALLER and len(attempt.jobs) > 1:
            self._sizes.learn(batch, attempt.jobs, error)
            self._giving_up.halve(batch, attempt.jobs, str(error))
        elif verdict is Verdict.ANEW:
            # Not at once: other names may be of no more use.
            self._pauses.failed(_PLANS, error)
            self._jobs.drop_from_batch(batch.id)
        else:
            self._hold_all(batch, attempt.jobs, hold_for(error, batch))
        self._forget(batch)
        self._kept.wake()
        return False

    def _after_sent(self, attempt: Attempt, verdict: Verdict, error: GahpError) -> None:
        """A batch whose jobs may be on the project is not to stay as it is."""
        batch = attempt.batch
        if verdict is Verdict.ALL and not attempt.is_clear(error):
            # Its jobs may exist, so they cannot be on hold.
            self._put_off(batch, error)
            return
        if verdict is Verdict.ANEW and self._is_there(attempt):
            return
        if verdict is Verdict.SMALLER:
            self._sizes.learn(batch, attempt.jobs, error)
        if verdict is Verdict.ANEW:
            self._pauses.failed(_PLANS, error)
        clear = attempt.is_clear(error)
        self._forget(batch)
        self._giving_up.begin(batch, verdict, error, clear=clear)

    def _is_there(self, attempt: Attempt) -> bool:
        """Tell whether the batch has all its jobs, whatever has become of it since.

        It may have been aborted or retired on the project, by a person or for its lease: what has
        become of its jobs is for those who follow it to find out.
        """
        batch = attempt.batch
        if batch.project_batch_id is None:
            return False
        try:
            names = self._kept.bridge.job_names(batch.project_batch_id)
        except GahpError as error:
            log.info("Batch %s cannot be looked at: %s", batch.name, error)
            return False
        if set(names) != attempt.ids.keys():
            return False
        self._is_submitted(batch, batch.project_batch_id, len(names))
        return True

    def _after_death(self, batch: BatchRow) -> Verdict:
        deaths = self._deaths[batch.id] = self._deaths.get(batch.id, 0) + 1
        enough = 1 if "/" in batch.together else _DEATHS
        return Verdict.SUSPECT if deaths >= enough else Verdict.LATER

    def _is_beyond_quota(self, attempt: Attempt) -> bool:
        """Tell whether the batch is too large for the account: no job is there that could end.

        The account's other jobs may be from another submit node, so the project is asked.
        """
        there = self._jobs.on_project(self._kept.url, self._kept.account)
        if there or len(attempt.jobs) == 1:
            return False
        try:
            batches = self._kept.bridge.batches()
        except RpcError as error:
            log.info("It is not known which jobs fill the account's limit: %s", error)
            return False
        return all(batch.state.name != "IN_PROGRESS" for batch in batches)

    def _has_lasted(self, attempt: Attempt, error: GahpError) -> bool:
        """Tell whether jobs that were never sent have waited for an admin for long enough.

        That is for refusals by a project that answers, and for addresses at which there is none.
        """
        batch_id = attempt.batch.id
        if is_about_project(error) and not getattr(error, "permanent", False):
            self._stubborn.pop(batch_id, None)
            return False
        since = self._stubborn.setdefault(batch_id, time.monotonic())
        return not attempt.was_sent and time.monotonic() - since > BELIEVED

    # -- holds

    def _hold_those_to_blame(
        self, attempt: Attempt, request: SubmitRequest | None, error: GahpError
    ) -> bool:
        """Put the jobs on hold that cannot be sent; return whether others are left."""
        batch = attempt.batch
        refused: Mapping[str, GahpError] = {}
        try:
            if request is not None:
                refused = self._kept.bridge.judge(request).refusals
        except RpcError as trouble:
            self._put_off(batch, trouble)
            return False
        holds = {
            attempt.ids[name]: hold_for(why, batch)
            for name, why in refused.items()
            if name in attempt.ids and verdict_on(why) is Verdict.JOBS
        }
        if not holds:
            holds = {job_id: hold_for(error, batch) for job_id in self._blamed(attempt, error)}
        alike: dict[Hold, list[int]] = {}
        for job_id, hold in holds.items():
            alike.setdefault(hold, []).append(job_id)
        for hold, job_ids in alike.items():
            self._jobs.hold(job_ids, hold)
        log.warning("Batch %s: %d jobs are on hold", batch.name, len(holds))
        if len(holds) < len(attempt.jobs):
            return True
        self._forget(batch)
        return False

    def _blamed(self, attempt: Attempt, error: GahpError) -> list[int]:
        """Return the jobs that an error names, all if it names none."""
        if isinstance(error, JobRefused) and error.job_name in attempt.ids:
            return [attempt.ids[error.job_name]]
        if isinstance(error, StagingError) and error.path is not None:
            quoted = _in_json(error.path)
            blamed = [job.id for job in attempt.jobs if quoted in job.description]
            if blamed:
                return blamed
        return [job.id for job in attempt.jobs]

    def _hold_all(self, batch: BatchRow, jobs: Sequence[JobRow], hold: Hold) -> None:
        """Put all jobs of a batch that was never sent on hold; nothing is owed for it then."""
        log.warning("Batch %s: its %d jobs are on hold: %s", batch.name, len(jobs), hold.reason)
        self._jobs.hold([job.id for job in jobs], hold)
        self._jobs.close_batch(batch.id, retired=True)

    # -- later, and smaller

    def _put_off(self, batch: BatchRow, trouble: GahpError) -> None:
        """Try the batch again later."""
        if self._kept.stopping.is_set():
            return  # it may have failed for that
        until = self._pauses.failed(_sending_of(batch), trouble)
        self._failed.add(batch.id)
        if len(self._failed) > 1:
            # What several batches fail at is not one's own: more of them would fare no better.
            self._pauses.later(_PLANS)
        try:
            self._jobs.postpone(batch.id, until, str(trouble))
        except LedgerError as failed:
            log.error("Batch %s is tried again later: %s (%s)", batch.name, trouble, failed)


def new_name() -> str:
    """Return a batch's name, which no other has."""
    return f"bg-{secrets.token_hex(16)}"


def _sending_of(batch: BatchRow) -> tuple[str, int]:
    """Return what the pauses between attempts to send a batch are kept under."""
    return "send", batch.id


def _in_json(path: str) -> str:
    """Return a path as it stands in a description."""
    return json.dumps(path)
