"""A job of a batch, as the project describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.tracebacks import concise

if TYPE_CHECKING:
    import os

    from boinc_gahp import rpc
    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.fetching import Fetched
    from boinc_gahp.api.types import JobState
    from boinc_gahp.fetch import Failure


@concise
class BatchJob:
    """A job of a batch, as the project described it when it was asked.

    Attributes:
        batch: the job's batch.
        info: the values from the reply.
        id: the job's number on the project (its workunit).
        name: unique over the whole project.
        canonical_instance_id: the instance whose outputs count; 0 if there is none yet.
        errors: the project's words for what went wrong ("too_many_error_results", "cancelled").
        exit_statuses: of a failed job: one for each instance that failed.
        cpu_time: seconds used by the canonical instance; None if there is none yet.
    """

    __slots__ = ("batch", "info")

    def __init__(self, batch: Batch, info: rpc.JobInfo) -> None:
        self.batch = batch
        self.info = info

    @property
    def id(self) -> int:
        """The job's number on the project (its workunit)."""
        return self.info.id

    @property
    def name(self) -> str:
        """The job's name, unique over the whole project."""
        return self.info.name

    @property
    def state(self) -> JobState:
        """The job's state when the project was asked."""
        return self.info.state

    @property
    def is_over(self) -> bool:
        """Whether the job is done or has failed."""
        return self.info.state.is_over

    @property
    def canonical_instance_id(self) -> int:
        """The instance whose outputs count; 0 if there is none yet."""
        return self.info.canonical_instance_id

    @property
    def errors(self) -> tuple[str, ...]:
        """The project's words for what went wrong."""
        return self.info.errors

    @property
    def exit_statuses(self) -> tuple[int, ...]:
        """Of a failed job: one number for each instance that failed."""
        return self.info.exit_statuses

    @property
    def cpu_time(self) -> float | None:
        """Seconds used by the canonical instance; None if there is none yet."""
        return self.info.cpu_time

    def instances(self) -> tuple[rpc.ResultInfo, ...]:
        """Ask the project for the job's instances; raises RpcError."""
        return self.batch.project.rpc.query_job(self.id)

    def fetch(self, directory: str | os.PathLike[str]) -> Fetched:
        """Fetch the job's outputs into ``directory``; see :meth:`Batch.fetch`."""
        return self.batch.fetch(directory, jobs=[self.name])

    def failure(self) -> Failure | None:
        """Ask why the job failed; None if it has not, or is done after all. Raises RpcError."""
        return self.batch.project.session.bridge.failure(self.name, self.batch.id)

    def __repr__(self) -> str:
        more = f", {', '.join(self.errors)}" if self.errors else ""
        return f"<BatchJob {self.id} {self.name!r} {self.state.name.lower()}{more}>"
