"""What is written down while a batch is submitted, by whoever has to answer for it later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.bridge.types import SubmitRequest
    from boinc_gahp.rpc import BatchDetails


@dataclass(frozen=True, slots=True)
class Sending:
    """How far a batch is that is being submitted.

    Attributes:
        batch_id: the project's id of it; None: it is not known to be there.
        ours: whether the project has no jobs in it but those of the request.
        sent: whether jobs of it may be on the project.
        unclear: whether a submit_batch of it may still be running on the project.
    """

    batch_id: int | None = None
    ours: bool = True
    sent: bool = False
    unclear: bool = False

    def seen(self, details: BatchDetails, request: SubmitRequest) -> Sending:
        """Return this with what the project answered when it was asked for the request's name."""
        if details.batch.name != request.batch_name:
            return self  # the project ignores case, accents and trailing spaces
        names = {job.name for job in details.jobs}
        # A retired batch has no job that runs; to abort it would take it back to the living ones.
        has_jobs = bool(names) and details.batch.state is not BatchState.RETIRED
        return replace(
            self,
            batch_id=details.batch.id,
            ours=names <= {name for name, _ in request.jobs},
            sent=self.sent or has_jobs,
        )


class Journal:
    """Is told by :func:`boinc_gahp.bridge.submit.submit` how far it is; this one keeps nothing.

    What a method raises ends the submit; :meth:`failed` raises nothing.
    """

    def begin(self) -> Sending:
        """Return how far the batch was when it was last written about."""
        return Sending()

    def wanted(self) -> Iterable[str] | None:
        """Return the names of the jobs that are still wanted; None: all are.

        Called while files are read and sent, so that none are sent that only others need.
        """
        return None

    def files_read(self, md5s: Mapping[str, str]) -> None:
        """Take the MD5s, in hex and by path, of the local files of the jobs to be sent."""

    def about_to_send(self, batch_id: int) -> None:
        """Write down that a submit_batch is about to be sent; if this raises, it is not.

        Args:
            batch_id: the project's id of the batch.
        """

    def done(self, batch_id: int, sending: Sending) -> None:
        """Write down that all jobs of the batch, by the project's id, are there."""

    def failed(self, sending: Sending, error: BaseException) -> None:
        """Do what has to be done if the submit ends in an error.

        Args:
            sending: how far the batch was.
            error: what ended it.
        """
