"""The journal of a batch of HTCondor's jobs while it is submitted: the ledger of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.submit.journal import Journal, Sending

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boinc_gahp.htcondor.context import Kept
    from boinc_gahp.ledger.halving import Halving
    from boinc_gahp.ledger.jobs import BatchRow, JobRow


class Stopped(Exception):
    """The batch should not be sent (any more)."""


class Changed(Exception):
    """Jobs of the batch were cancelled before anything was sent: it is sent without them."""


class LedgerJournal(Journal):
    """Notes in the ledger that a batch is ``sent``, and that it is ``submitted``.

    Its methods raise :class:`Stopped`, :class:`Changed` and LedgerError.

    Args:
        kept: what the keeper gives to its parts.
        halving: the parts of batches, in the same ledger.
        batch: a batch that is ``planned`` or ``sent``.
        jobs: the jobs in the request.
        sending: how far the batch is.
    """

    def __init__(
        self,
        kept: Kept,
        halving: Halving,
        batch: BatchRow,
        jobs: Sequence[JobRow],
        sending: Sending,
    ) -> None:
        self._kept = kept
        self._halving = halving
        self._batch = batch
        self._names = {str(job.job_name): job.id for job in jobs}
        #: How far the batch is.
        self.sending = sending
        self._sent = sending.sent

    def begin(self) -> Sending:
        """Return how far the batch was."""
        return self.sending

    def wanted(self) -> Iterable[str]:
        """Return the names of the jobs whose files are still needed."""
        numbers = self._halving.sending(self._batch.id)
        if not numbers or self._kept.stopping.is_set():
            raise Stopped
        if self._sent:
            return self._names  # the request has to have them all
        return [f"{self._batch.name}-{number}" for number in numbers]

    def about_to_send(self, batch_id: int) -> None:
        """Note that the batch is ``sent``, with exactly the jobs of the request."""
        if self._kept.stopping.is_set():
            raise Stopped
        said = self._kept.jobs.about_to_send(
            self._batch.id, batch_id, frozenset(self._names.values())
        )
        if said != "go":
            raise Changed if said == "changed" else Stopped
        self._sent = True

    def done(self, batch_id: int, sending: Sending) -> None:
        """Note that the batch is ``submitted``."""
        self._kept.jobs.submitted(self._batch.id, batch_id)
        self.sending = sending

    def failed(self, sending: Sending, error: BaseException) -> None:  # noqa: ARG002
        """Note how far the batch came."""
        self.sending = sending
