"""From a table of parameters to futures over the jobs of an app."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.api.app import look_up
from boinc_gahp.api.folders import folder_name
from boinc_gahp.api.futures import JobFutures, JobResult
from boinc_gahp.api.gathering import failed_job
from boinc_gahp.api.naming import named_by_contents
from boinc_gahp.api.progress import of_steps
from boinc_gahp.api.request import job_names
from boinc_gahp.api.table import jobs_from
from boinc_gahp.errors import BadRequest
from boinc_gahp.submit import Job, buda_name
from boinc_gahp.text import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from typing_extensions import Unpack

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.project import Project
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.session import Session
    from boinc_gahp.api.watching import Poll
    from boinc_gahp.submit import File

__all__ = ["directory_for", "map_jobs", "with_outputs"]

#: How many names an error lists.
_NAMED = 5


def map_jobs(
    project: Project,
    app_name: str,
    rows: str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Iterable[Job],
    *,
    args: Sequence[object] | str | None,
    inputs: Mapping[str, File] | None,
    outputs: Collection[str] | None,
    directory: str | os.PathLike[str] | None,
    poll: Poll,
    **options: Unpack[Options],
) -> JobFutures[JobResult]:
    """Submit a job for each row, and return futures; see :meth:`Project.map`."""
    jobs = _jobs(rows, args, inputs)
    wanted = (outputs,) if isinstance(outputs, str) else tuple(outputs or ())
    if wanted and buda_name(app_name) is not None:
        jobs = [job if job.outputs else replace(job, outputs=wanted) for job in jobs]
    elif wanted:
        _check_outputs(project.session, app_name, jobs, wanted, options)
    with of_steps(options.get("progress")) as report:
        options["progress"] = report
        if options.get("name") is None:
            name, jobs = named_by_contents(project.session, app_name, jobs, **options)
            options["name"] = name
        batch = project.submit(app_name, jobs, **options)
    names = job_names(batch.name, jobs)
    return JobFutures(
        batch,
        [(name, job.parameters) for name, job in zip(names, jobs, strict=True)],
        directory_for(batch, directory),
        with_outputs(batch, wanted),
        poll=poll,
    )


def directory_for(batch: Batch, directory: str | os.PathLike[str] | None) -> Path:
    """Return where the outputs of a batch's futures go: a folder of its name, if none is named."""
    # The working directory may change before the first job is over. A link's target is not used.
    return Path(os.path.abspath(directory or folder_name(batch.name)))  # noqa: PTH100


def with_outputs(batch: Batch, wanted: Collection[str]) -> Callable[[JobResult], JobResult]:
    """Return a function that returns a job's result, if it ended well and has its outputs.

    The function raises JobFailed for other results.

    Args:
        batch: the batch.
        wanted: open names of the outputs that each job has to have.
    """

    def made(result: JobResult) -> JobResult:
        status = result.exit_status
        missing = [name for name in wanted if name not in result.outputs]
        if not status and not missing:
            return result
        reason = f"exit status {status}"
        if not status:
            there = listed([repr(name) for name in result.outputs], _NAMED)
            reason = f"it has no output {missing[0]!r}; its outputs are: {there}"
        raise failed_job(batch, result.name, reason, exit_status=status, stderr=result.stderr)

    return made


def _jobs(
    rows: Any, args: Sequence[object] | str | None, inputs: Mapping[str, File] | None
) -> list[Job]:
    """Return a job for each row; rows may be jobs already."""
    is_table = isinstance(rows, (str, os.PathLike, Mapping)) or hasattr(rows, "to_dict")
    if is_table or hasattr(rows, "to_dicts") or not isinstance(rows, Iterable):
        return jobs_from(rows, args=args, inputs=inputs)
    several = list(rows)
    if not any(isinstance(each, Job) for each in several):
        return jobs_from(several, args=args, inputs=inputs)
    if args is not None or inputs is not None:
        raise BadRequest(
            "rows has jobs, which have arguments and inputs of their own: leave out args and "
            "inputs, or give mappings"
        )
    return several


def _check_outputs(
    session: Session,
    app_name: str,
    jobs: Sequence[Job],
    wanted: Collection[str],
    options: Options,
) -> None:
    """Check the names of outputs before jobs are sent that could not have them.

    Raises:
        BadRequest: the app's jobs make no such output.
        NotFound, PermissionDenied, TemplateError, RpcError: the app's templates cannot be read.
    """
    if options.get("output_template_filename") or any(job.output_template for job in jobs):
        return
    made = [info.open_name for info in look_up(session, app_name).outputs if info.open_name]
    for name in wanted:
        if name not in made:
            raise BadRequest(
                f"outputs has {name!r}, which jobs of {app_name} do not make; their outputs are: "
                f"{listed([repr(each) for each in made], _NAMED)}{did_you_mean(name, made, show=repr)}"
            )
