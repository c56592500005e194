"""What of a submit is written down in the ledger, before it is done and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.htcondor._context import NoLongerWanted
from boinc_gahp.submit.journal import Journal, SubmitState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.ledger.rows import BatchRow, JobRow


class LedgerJournal(Journal):
    """Notes in the ledger that a batch is ``sent``, and that it is ``submitted``.

    Its methods raise :class:`NoLongerWanted` and LedgerError.

    Args:
        context: what the account's manager shares with its parts.
        batch: a batch that is ``planned`` or ``sent``.
        jobs: the jobs in the request.
        sending: how far the batch is.
    """

    def __init__(
        self,
        context: AccountContext,
        batch: BatchRow,
        jobs: Sequence[JobRow],
        sending: SubmitState,
    ) -> None:
        self._context = context
        self._batch = batch
        self._names = {str(job.job_name): job.id for job in jobs}
        #: How far the batch is.
        self.sending = sending
        self._sent = sending.sent

    def begin(self) -> SubmitState:
        """Return how far the batch was."""
        return self.sending

    def wanted(self) -> Iterable[str]:
        """Return the names of the jobs whose files are still needed."""
        numbers = self._context.jobs.sending(self._batch.id)
        if not numbers or self._context.stopping.is_set():
            raise NoLongerWanted
        if self._sent:
            return self._names  # the request has to have them all
        return [f"{self._batch.name}-{number}" for number in numbers]

    def about_to_send(self, batch_id: int) -> None:
        """Note that the batch is ``sent``, with exactly the jobs of the request."""
        if self._context.stopping.is_set():
            raise NoLongerWanted
        answer = self._context.jobs.about_to_send(
            self._batch.id, batch_id, frozenset(self._names.values())
        )
        if answer != "go":
            raise NoLongerWanted(has_changed=answer == "changed")
        self._sent = True

    def done(self, batch_id: int, sending: SubmitState) -> None:
        """Note that the batch is ``submitted``."""
        self._context.jobs.submitted(self._batch.id, batch_id)
        self.sending = sending

    def failed(self, sending: SubmitState, error: BaseException) -> None:  # noqa: ARG002
        """Note how far the batch came."""
        self.sending = sending
