"""Why jobs of a batch failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.api import finding
from boinc_gahp.api._fetching_batch import check_answers
from boinc_gahp.api.types import JobState
from boinc_gahp.fetch.failures import failure_of
from boinc_gahp.threads import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.fetch.types import Failure
    from boinc_gahp.rpc.types import JobInfo

__all__ = ["JobFailure", "failures"]

#: How many jobs are asked about at a time.
_THREADS = 4


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A job that failed or was aborted, with what the project says about it."""

    name: str
    id: int
    failure: Failure

    @property
    def why(self) -> str:
        """The reason for the failure, on one line."""
        return self.failure.why

    @property
    def exit_statuses(self) -> tuple[int, ...]:
        """The exit statuses of the failed instances, in their order."""
        return self.failure.exit_statuses

    @property
    def text(self) -> str:
        """Everything known about the failure, as text of several lines."""
        return self.failure.text or f"job {self.name} failed: {self.failure.why}\n"


def failures(
    batch: Batch,
    *,
    jobs: Iterable[int | str] | None = None,
) -> Iterator[JobFailure]:
    """Yield each failed job of a batch with the reasons, in order; asks the project job by job.

    Few projects know the stderr of a failed instance (``web-rpcs.rst``, "query_completed_job").

    Args:
        batch: the batch.
        jobs: names or ids of jobs; None: all.

    Raises:
        NoSuchJob: one of ``jobs`` does not exist.
        RpcError: the project could not be asked for the jobs, or stopped answering.
    """
    session = batch.project.session
    listed = finding.find_jobs(session, batch.id, batch.name, jobs)

    def ask(job: JobInfo) -> JobFailure:
        failure = failure_of(session.context, job)
        if failure.trouble is not None:
            check_answers(session, failure.trouble)
        return JobFailure(job.name, job.id, failure)

    failed = (job for job in listed if job.state is JobState.FAILED)
    yield from in_order(ask, failed, threads=_THREADS, name="failure")
