"""What is known of the jobs of a batch that came to nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.bridge import OPEN
from boinc_gahp.bridge.directories import make_directories
from boinc_gahp.bridge.temporary import explain, registry
from boinc_gahp.remote import folders
from boinc_gahp.remote.collecting import is_failed, named

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from boinc_gahp.bridge import Failure
    from boinc_gahp.remote.session import Session
    from boinc_gahp.rpc import BatchJob

__all__ = ["FAILURE", "JobFailure", "failures", "save"]

#: What the file in a failed job's folder is called.
FAILURE = "failure.txt"


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
        report = self.failure.report or f"job {self.name} failed: {self.failure.why}\n"
        return report + (f"\n{self.failure.stderr}" if self.failure.stderr else "")


def failures(
    session: Session, batch_id: int, *, jobs: Iterable[int | str] | None = None
) -> Iterator[JobFailure]:
    """Yield what is known of each job of a batch that has failed, as it is asked.

    The stderr of a failed instance is known to few projects (``web-rpcs.md``,
    "query_completed_job is broken for every job that has no canonical instance").

    Args:
        session: the project and the account.
        batch_id: the project's id of the batch.
        jobs: names or ids of jobs; None: all.

    Raises:
        NoSuchJob: one of ``jobs`` does not exist.
        RpcError: the project could not be asked for the jobs.
    """
    if jobs is None:
        listed: Iterable[BatchJob] = session.rpc.iter_jobs(batch_id)
    else:
        name = session.rpc.batch(batch_id).name
        listed = named(session, batch_id, name, [str(word) for word in jobs])
    for job in listed:
        if is_failed(job):
            yield JobFailure(job.name, job.id, session.bridge.failure_of(job))


def save(failure: JobFailure, directory: str | os.PathLike[str]) -> Path:
    """Write what is known of a failure to ``failure.txt`` in the job's folder; return its path.

    Raises:
        OutputError: it cannot be written.
    """
    path = Path(directory).absolute() / folders.folder_name(failure.name) / FAILURE
    try:
        make_directories(path.parent, OPEN)
    except OSError as error:
        raise explain(error, path) from error
    with registry.file(path) as file:
        file.write(failure.text.encode("utf-8", "backslashreplace"))
        file.commit()
    return path
