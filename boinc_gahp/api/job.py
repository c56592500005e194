"""A job of a batch, as the project describes it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.api.outputs.folders import folder_name, note_of
from boinc_gahp.api.outputs.logs import log_of
from boinc_gahp.api.types import JobState
from boinc_gahp.errors import NotKnownHere, OutputError
from boinc_gahp.fetch.failures import look_up_failure

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.manifest import SubmittedInput, SubmittedJob
    from boinc_gahp.api.outputs.fetching import Fetched
    from boinc_gahp.api.outputs.folders import FetchRecord
    from boinc_gahp.fetch.job_end import JobEnd
    from boinc_gahp.rpc.types import JobInfo, ResultInfo
    from boinc_gahp.submit.types import Parameter


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

    def __init__(self, batch: Batch, info: JobInfo) -> None:
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

    # -- what was submitted

    @property
    def submitted(self) -> SubmittedJob:
        """All that was submitted for the job.

        Raises:
            NotKnownHere: this machine has no manifest of the batch: another one submitted it, or it
                is retired.
        """
        manifest = self.batch.manifest
        if manifest is None or self.name not in manifest.jobs:
            raise NotKnownHere(
                f"what was submitted for job {self.name!r} of batch {self.batch.name!r} (id "
                f"{self.batch.id}) is not known here: a project does not tell it, and only the "
                "machine that submitted the batch keeps it, until the batch is retired"
            )
        return manifest.job(self.name)

    @property
    def args(self) -> tuple[str, ...]:
        """The words of its arguments; raises NotKnownHere as :attr:`submitted`."""
        return self.submitted.args

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The values of its row, by their columns; raises NotKnownHere as :attr:`submitted`."""
        return self.submitted.parameters

    @property
    def inputs(self) -> Mapping[str, SubmittedInput]:
        """Its input files by their open names, each with its MD5 and where it came from.

        Raises:
            NotKnownHere: as :attr:`submitted`.
        """
        return self.submitted.inputs

    # -- what came of it

    @property
    def folder(self) -> Path:
        """The folder with its outputs, where the batch was last fetched on this machine.

        Raises:
            OutputError: the job was not fetched, or its folder is not there any more; says what to
                call.
        """
        return self._fetched()[0]

    @property
    def outputs(self) -> dict[str, Path]:
        """The paths of its outputs by their open names, where the batch was last fetched.

        Raises:
            OutputError: as :attr:`folder`.
        """
        folder, note = self._fetched()
        return {name: folder / path for name, path in note.outputs.items()}

    @property
    def stderr(self) -> str | None:
        """What the job wrote to its stderr: from its folder, or else the project is asked.

        None: the job is not over, or the project does not tell. Few projects tell the stderr of
        failed jobs (:meth:`Batch.logs`).

        Raises:
            RpcError: the project could not be asked.
        """
        with suppress(OutputError):
            folder, note = self._fetched()
            if note.stderr in note.there(folder):
                return (folder / str(note.stderr)).read_text("utf-8", "replace")
        found = log_of(self.batch, self.info)
        if found.trouble is not None:
            raise found.trouble
        return found.stderr

    def _fetched(self) -> tuple[Path, FetchRecord]:
        """Return its folder and the note there; raises OutputError."""
        batch, root = self.batch, self.batch.directory
        named = f"job {self.name!r} of batch {batch.name!r} (id {batch.id})"
        if root is None:
            raise OutputError(
                f"{named} was not fetched on this machine: call batch.fetch(directory) first"
            )
        note = note_of(batch, self.info, root)
        if note is not None:
            return root / folder_name(self.name), note
        if not root.is_dir():
            raise OutputError(
                f"{named} was fetched into {str(root)!r}, which is not there any more: call "
                "batch.fetch(directory) with the directory's new place; that fetches only what is "
                "missing there"
            )
        if self.state is JobState.FAILED:
            raise OutputError(f"{named} failed, so it has no outputs: batch.reasons() tells why")
        if self.state is not JobState.DONE:
            raise OutputError(
                f"{named} is {self.state.value}, so it has no outputs yet: call batch.wait(), then "
                "batch.fetch(directory)"
            )
        raise OutputError(
            f"{named} is not in {str(root)!r}, where the batch was last fetched: call "
            f"batch.fetch({str(root)!r}), which fetches what is missing"
        )

    def instances(self) -> tuple[ResultInfo, ...]:
        """Ask the project for the job's instances; raises RpcError."""
        return self.batch.session.rpc.query_job(self.id)

    def fetch(self, directory: str | os.PathLike[str]) -> Fetched:
        """Fetch the job's outputs into ``directory``; see :meth:`Batch.fetch`."""
        return self.batch.fetch(directory, jobs=[self.name])

    def failure(self) -> JobEnd | None:
        """Ask why the job failed; None if it has not, or is done after all. Raises RpcError."""
        return look_up_failure(self.batch.session.context, self.name, self.batch.id)

    def __repr__(self) -> str:
        more = f", {', '.join(self.errors)}" if self.errors else ""
        return f"<BatchJob {self.id} {self.name!r} {self.state.name.lower()}{more}>"
