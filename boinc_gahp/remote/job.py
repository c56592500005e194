"""A job of a batch, as the project tells of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from boinc_gahp import rpc
    from boinc_gahp.bridge import Failure
    from boinc_gahp.remote.batch import Batch
    from boinc_gahp.remote.fetching import Fetched
    from boinc_gahp.remote.types import JobState


class BatchJob:
    """A job of a batch: a snapshot of what the project told when it was asked.

    Attributes:
        batch: the batch that it is a job of.
        info: the values as they came.
        id: the project's number for the job (its workunit).
        name: unique over the whole project.
        canonical_instance_id: of the instance whose outputs count; 0 while there is none.
        errors: the project's words for what went wrong ("too_many_error_results", "cancelled").
        exit_statuses: one a failed instance; of a job that has failed.
        cpu_time: seconds, of the canonical instance; None while there is none.
    """

    __slots__ = ("batch", "info")

    def __init__(self, batch: Batch, info: rpc.JobInfo) -> None:
        self.batch = batch
        self.info = info

    @property
    def id(self) -> int:
        """The project's number for the job (its workunit)."""
        return self.info.id

    @property
    def name(self) -> str:
        """The job's name, unique over the whole project."""
        return self.info.name

    @property
    def state(self) -> JobState:
        """How it was doing."""
        return self.info.state

    @property
    def is_over(self) -> bool:
        """Whether it is done, or has failed."""
        return self.info.state.is_over

    @property
    def canonical_instance_id(self) -> int:
        """The instance whose outputs count; 0 while there is none."""
        return self.info.canonical_instance_id

    @property
    def errors(self) -> tuple[str, ...]:
        """The project's words for what went wrong."""
        return self.info.errors

    @property
    def exit_statuses(self) -> tuple[int, ...]:
        """One number for each instance that failed, of a job that has failed."""
        return self.info.exit_statuses

    @property
    def cpu_time(self) -> float | None:
        """Seconds of the canonical instance; None while there is none."""
        return self.info.cpu_time

    def instances(self) -> tuple[rpc.ResultInfo, ...]:
        """Ask for the job's instances; raises RpcError."""
        return self.batch.project.rpc.query_job(self.id)

    def fetch(self, directory: str | os.PathLike[str]) -> Fetched:
        """Fetch the job's outputs into ``directory``; see :meth:`Batch.fetch`."""
        return self.batch.fetch(directory, jobs=[self.name])

    def failure(self) -> Failure | None:
        """Ask why the job failed; None if it has not, or was done after all. Raises RpcError."""
        return self.batch.project.session.bridge.failure(self.name, self.batch.id)

    def __repr__(self) -> str:
        more = f", {', '.join(self.errors)}" if self.errors else ""
        return f"<BatchJob {self.id} {self.name!r} {self.state.name.lower()}{more}>"
