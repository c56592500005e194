"""One run of a batch's submission, and what it leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.blah.sending_verdict import ended_clearly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.errors import GahpError
    from boinc_gahp.ledger.jobs import BatchRow, JobRow


class Attempt:
    """One run of a batch's submission: what is in it, and whether submit_batch was sent.

    Args:
        batch: as it was at the beginning.
        jobs: those in the request.
        began_clear: whether no submit_batch of the batch can have been running then.
    """

    def __init__(self, batch: BatchRow, jobs: Sequence[JobRow], *, began_clear: bool) -> None:
        self.batch = batch
        self._began_clear = began_clear
        self.jobs = jobs
        self.ids = {str(job.job_name): job.id for job in jobs}
        self.sends = 0

    @property
    def was_sent(self) -> bool:
        """Whether jobs may be on the project."""
        return self.sends > 0 or self.batch.state == "sent"

    @property
    def is_single(self) -> bool:
        """Whether no submit_batch was sent but one at most, in this run."""
        return self._began_clear and self.sends <= 1

    def is_clear(self, error: GahpError) -> bool:
        """Tell whether no submit_batch can be running on the project any more."""
        return self.is_single and (self.sends == 0 or ended_clearly(error))
