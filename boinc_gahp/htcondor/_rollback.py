"""Batches that cannot be submitted as they are: aborted for good, and their jobs sent otherwise.

A batch whose jobs may be on the project is aborted first, at least :data:`ABORT_AGAIN` seconds
after the last submit_batch whose end is unknown, until its end is certain
(:mod:`boinc_gahp.submit.abort`). Until then the batch stays ``giving_up`` in the ledger, over
any number of restarts.

If a project refuses a batch and does not say which job it means, the batch is halved, and the
halves again, until a refused job is alone. The change of the ledger that ends the whole batch makes
each half a batch; a crash before that only costs another refusal. If each of :data:`_DISJOINT`
parts was refused and none accepted, the cause is not a single job: the rest is not tried.
"""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.errors import GahpError, RpcError
from boinc_gahp.htcondor._context import is_ahead
from boinc_gahp.htcondor._sending_action import Action, Attempt, action_after, hold_for
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.ledger.rows import Hold
from boinc_gahp.submit.abort import ABORT_AGAIN, abort_once, abort_until_certain
from boinc_gahp.submit.journal import SubmitState
from boinc_gahp.text import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.ledger.rows import BatchRow, JobRow

log = logging.getLogger("boinc_gahp.htcondor")

#: Depth of halving at which there are :data:`_DISJOINT` parts.
_DEPTH = 4
_DISJOINT = 2**_DEPTH


class BatchRollback:
    """Aborts batches that are ``giving_up`` until they are over, and divides batches.

    Args:
        context: what the account's manager shares with its parts.
    """

    def __init__(self, context: AccountContext) -> None:
        self._context = context
        self._jobs = context.jobs
        #: Why batches are rolled back, as far as this process knows.
        self._reasons: dict[int, tuple[Attempt, GahpError]] = {}

    def begin(self, batch: BatchRow, attempt: Attempt, error: GahpError) -> bool:
        """Begin to roll back a batch whose jobs may exist; return whether to go on at once.

        Args:
            batch: a batch that is ``sent``.
            attempt: its state.
            error: the project's error.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        clear = not attempt.sending.unclear
        self._reasons[batch.id] = (attempt, error)
        self._jobs.begin_abort(batch.id, time.time() + (0.0 if clear else ABORT_AGAIN))
        log.info("Batch %s is given up: %s", batch.name, error)
        return clear

    def go_on(self, batch: BatchRow) -> bool:
        """Make sure that the batch is over on the project, then see to its jobs.

        Returns:
            False: there is nothing more to do for it at once.

        Raises:
            LedgerError: the ledger cannot be read or written.
            GahpError: it is not known whether it is over.
        """
        if batch.project_batch_id is None or self._is_time(batch, batch.project_batch_id):
            njobs = len(self._jobs.jobs_of(batch.id, described=False))
            attempt, _ = self._reasons.get(batch.id, (None, None))
            is_clear = attempt is not None and not attempt.sending.unclear
            project = self._context.project
            if abort_until_certain(project, batch, self._jobs, njobs=njobs, is_clear=is_clear):
                self._is_over(batch)
                self._context.wake()
        return False

    def _is_time(self, batch: BatchRow, project_batch_id: int) -> bool:
        """Tell whether an abort can be final now; if that is not known, set a time for it."""
        now = time.time()
        if is_ahead(batch.not_before, now, self._context.longest_pause):
            return False
        if 0 < batch.not_before <= now:
            return True
        # The clock was set back, or the batch's last job was cancelled: it is not known when its
        # last submit_batch ended.
        self._jobs.begin_abort(batch.id, now + ABORT_AGAIN)
        if batch.not_before == 0:
            # This saves volunteers' time, even if it may not be final.
            try:
                abort_once(self._context.project, project_batch_id, batch.name)
            except RpcError as error:
                log.info("Batch %s will be aborted later: %s", batch.name, error)
        return False

    def _is_over(self, batch: BatchRow) -> None:
        """Decide what becomes of the jobs of a batch that is aborted for good."""
        jobs = self._jobs.jobs_of(batch.id, "sending")
        attempt, error = self._reasons.pop(batch.id, (None, None))
        self._context.pauses.forget(("roll back", batch.id))
        log.info(
            "Batch %s is over on the project, but %d of its jobs are not", batch.name, len(jobs)
        )
        action = Action.RENAME
        if attempt is not None and error is not None:
            # As if the jobs that are left had never been sent.
            action = action_after(replace(attempt, sending=SubmitState(), jobs=len(jobs)), error)
        if action in {Action.HALVE, Action.BISECT}:
            self.halve(batch, jobs, str(error), suspect=action is Action.BISECT)
            return
        if action is Action.HOLD and error is not None:
            self._hold(batch, jobs, error)
        elif jobs and "/" in batch.group_key:
            self._divide(batch, [jobs], batch.group_key, batch.trouble or "")
            return
        self._jobs.drop_from_batch(batch.id)

    def _hold(self, batch: BatchRow, jobs: Sequence[JobRow], error: GahpError) -> None:
        if not jobs:
            return
        hold = hold_for(error, batch, alone=len(jobs) == 1)
        log.warning("Batch %s: %s on hold: %s", batch.name, count(len(jobs), "job"), hold.reason)
        self._jobs.hold([job.id for job in jobs], hold)

    # -- parts

    def halve(
        self, batch: BatchRow, jobs: Sequence[JobRow], trouble: str, *, suspect: bool = False
    ) -> None:
        """Make two batches of a batch's jobs; it was never sent, or is over on the project.

        Args:
            batch: a batch that is ``planned`` or ``giving_up``.
            jobs: two or more of its jobs.
            trouble: why, for people.
            suspect: whether the aim is to find out which job is refused.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        middle = len(jobs) // 2
        group_key = _deeper(batch.group_key) if suspect else batch.group_key
        self._divide(batch, [jobs[:middle], jobs[middle:]], group_key, trouble)

    def _divide(
        self, batch: BatchRow, parts: Sequence[Sequence[JobRow]], group_key: str, trouble: str
    ) -> None:
        planned = {new_name(): [job.id for job in part] for part in parts}
        lease_until = time.time() + self._context.htcondor.lease
        self._jobs.divide(batch.id, planned, group_key, trouble, lease_until)
        for name, job_ids in planned.items():
            log.info("Batch %s has %s of batch %s", name, count(len(job_ids), "job"), batch.name)

    def hold_untried(self, batch: BatchRow) -> Hold | None:
        """Return the hold for its jobs if enough other parts of its original batch were refused.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        family, depth = _family(batch.group_key)
        if depth <= _DEPTH or self._jobs.refused_parts(family, _DEPTH) < _DISJOINT:
            return None
        return Hold(
            f"{batch.trouble} (the project refused each of {_DISJOINT} separate groups of "
            "jobs; this job was not tried by itself)",
            HoldCode.REFUSED,
            0,
        )


def new_name() -> str:
    """Return a unique name for a batch."""
    return f"bg-{secrets.token_hex(16)}"


def _family(group_key: str) -> tuple[str, int]:
    """Return the family and depth of a batch that is a part of another; "" and 0 otherwise."""
    parts = group_key.split("/")
    return (parts[1], int(parts[2])) if len(parts) == 3 else ("", 0)


def _deeper(group_key: str) -> str:
    family, depth = _family(group_key)
    root = group_key.partition("/")[0]
    return f"{root}/{family or secrets.token_hex(8)}/{depth + 1}"
