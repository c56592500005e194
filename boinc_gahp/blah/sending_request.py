"""Makes the request that submits jobs of the ledger to the project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.blah.description import JobDescription
from boinc_gahp.bridge import Job, LocalFile, SubmitRequest
from boinc_gahp.bridge.types import by_open_name
from boinc_gahp.errors import JobRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.ledger.jobs import BatchRow, JobRow


def request_of(batch: BatchRow, jobs: Sequence[JobRow], lease: float) -> SubmitRequest:
    """Return the request for a batch of ``jobs``, which have equal parameters.

    Args:
        batch: the batch, with its name.
        jobs: its jobs, at least one, with their names in it.
        lease: its lease in seconds.

    Raises:
        JobRefused: a description in the ledger is damaged; names the job.
    """
    described = [(str(job.job_name), _description(job)) for job in jobs]
    first = described[0][1]
    return SubmitRequest(
        batch.name,
        batch.app_name,
        [
            (
                name,
                Job(
                    job.args,
                    by_open_name(job.inputs),
                    priority=job.priority,
                    input_template=job.input_template,
                    output_template=job.output_template,
                ),
            )
            for name, job in described
        ],
        parameters=first.parameters,
        app_version_num=first.app_version_num,
        outputs={name: _outputs(job) for name, job in described},
        lease=lease,
    )


def local_bytes(jobs: Sequence[JobRow]) -> int:
    """Return the bytes of the local input files of jobs."""
    sizes: dict[str, int] = {}
    for job in jobs:
        try:
            inputs = JobDescription.from_json(job.description).inputs
        except ValueError:
            continue
        for _, file in inputs:
            if isinstance(file, LocalFile) and file.expected is not None:
                sizes[file.path] = file.expected[0]
    return sum(sizes.values())


def _description(job: JobRow) -> JobDescription:
    try:
        return JobDescription.from_json(job.description)
    except ValueError as error:
        raise JobRefused(
            f"the description of job {job.job_directory} in the ledger cannot be read ({error}): "
            "release the job to submit it again",
            job_name=job.job_name,
        ) from error


def _outputs(job: JobDescription) -> tuple[str, ...]:
    """Return the outputs that the job names, without stdout and stderr, which always exist."""
    standard = {Path(path).name for path in (job.stdout, job.stderr) if path is not None}
    return tuple(name for name in job.outputs or () if Path(name).name not in standard)
