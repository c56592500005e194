"""What is known of the jobs of a batch that came to nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.bridge import OPEN
from boinc_gahp.bridge.destinations import explain
from boinc_gahp.bridge.directories import make_directories
from boinc_gahp.bridge.parallel import in_order
from boinc_gahp.bridge.temporary import registry
from boinc_gahp.remote import finding, folders
from boinc_gahp.remote.collecting import check_answers
from boinc_gahp.remote.types import JobState

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from boinc_gahp.bridge import Failure
    from boinc_gahp.remote.session import Session
    from boinc_gahp.rpc import JobInfo

__all__ = ["FAILURE", "JobFailure", "failures", "save"]

#: What the file in a failed job's folder is called.
FAILURE = "failure.txt"
#: Jobs that are asked about at a time.
_THREADS = 4


@dataclass(frozen=True, slots=True)
class JobFailure:
    """A job that failed or was aborted, and what the project tells of it."""

    name: str
    id: int
    failure: Failure

    @property
    def why(self) -> str:
        """Why it failed, on one line."""
        return self.failure.why

    @property
    def exit_statuses(self) -> tuple[int, ...]:
        """One for each instance that failed, in their order."""
        return self.failure.exit_statuses

    @property
    def text(self) -> str:
        """All that is known, in lines for people."""
        return self.failure.text or f"job {self.name} failed: {self.failure.why}\n"


def failures(
    session: Session,
    batch_id: int,
    batch_name: str,
    *,
    jobs: Iterable[int | str] | None = None,
) -> Iterator[JobFailure]:
    """Yield what is known of each job of a batch that has failed, in their order, as it is asked.

    The stderr of a failed instance is known to few projects (``web-rpcs.rst``,
    "query_completed_job").

    Args:
        session: the project and the account.
        batch_id: the project's id of the batch.
        batch_name: the batch's name, for errors.
        jobs: names or ids of jobs; None: all.

    Raises:
        NoSuchJob: one of ``jobs`` does not exist.
        RpcError: the project could not be asked for the jobs, or does not answer any more.
    """
    if jobs is None:
        listed: Iterable[JobInfo] = session.rpc.iter_jobs(batch_id)
    else:
        listed = finding.jobs(session, batch_id, batch_name, jobs)

    def ask(job: JobInfo) -> JobFailure:
        failure = session.bridge.failure_of(job)
        if failure.trouble is not None:
            check_answers(session, failure.trouble)
        return JobFailure(job.name, job.id, failure)

    failed = (job for job in listed if job.state is JobState.FAILED)
    yield from in_order(ask, failed, threads=_THREADS, name="failure")


def save(failure: JobFailure, directory: str | os.PathLike[str]) -> Path:
    """Write what is known of a failure to ``failure.txt`` in the job's folder; return its path.

    Raises:
        OutputError: it cannot be written.
    """
    root = Path(directory).absolute()
    path = root / folders.folder_name(failure.name) / FAILURE
    try:
        make_directories(root, OPEN)
    except OSError as error:
        raise explain(error, path) from error
    with registry.file(path, inside=root) as file:
        file.write(failure.text.encode("utf-8", "backslashreplace"))
        file.commit()
    return path
