"""Finds a job on the project: its batch, its workunit, its canonical instance.

No RPC tells a job's batch. query_completed_job only tells the canonical instance's id, and
get_output.php wants its name; so the way is from the batch (query_batch: workunit and instance ids
of all its jobs) to the workunit (query_job: the instance's name).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import JobFailed, NotFound, NotOwner, OutputError, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.destinations import CancelScope
    from boinc_gahp.rpc.types import CompletedJob, JobInfo
    from boinc_gahp.submit.context import BatchView

#: Seconds for the first request about a job whose batch is not known; if the job failed, most
#: projects cannot answer it.
_TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class Located:
    """A job, and the batch it is in."""

    batch_id: int
    app_name: str
    job: JobInfo


def find(
    context: FetchContext, job_name: str, batch_id: int | None = None
) -> tuple[Located | None, CompletedJob | None]:
    """Return where a job is, and the answer of query_completed_job if it was asked on the way.

    A job whose name does not tell its batch is first asked for by its name, so that a job that does
    not exist costs one RPC and not a list of every batch.

    Args:
        context: the project.
        job_name: the job.
        batch_id: the batch that it should be in, if that is known.

    Raises:
        NotFound: the project does not know the job.
        RpcError: the project could not be reached.
    """
    located = None
    if batch_id is not None:
        located = _in_batch(context, batch_id, job_name, _has_result(job_name))
    located = located or _near(context, job_name)
    if located is not None:
        return located, None
    project = context.project.until(time.monotonic() + _TIMEOUT)
    trouble: RpcError | None = None
    completed: CompletedJob | None = None
    try:
        completed = project.query_completed_job(job_name)
    except NotFound:
        raise
    except RpcError as error:
        trouble = error
    located = _far(context, job_name)
    if located is None and trouble is not None:
        raise trouble
    return located, completed


def completed_job(
    context: FetchContext,
    job_name: str,
    located: Located | None,
    completed: CompletedJob | None,
    scope: CancelScope,
) -> CompletedJob:
    """Return what the project tells about a finished job, which is asked if it was not yet.

    Raises:
        JobFailed: the job is there, and has no canonical instance.
        OutputError: no batch has it, and it has no canonical instance.
        RpcError: the project could not be reached.
    """
    if located is not None and not located.job.canonical_instance_id:
        raise JobFailed(
            f"job {job_name!r} has no result on {context.project.host}: it is not finished, or it "
            "failed",
            job=job_name,
        )
    scope.check()
    if completed is None:
        completed = context.project.query_completed_job(job_name)
    if not completed.canonical_resultid:
        raise OutputError(
            f"job {job_name!r} has no result on {context.project.host}, and is in no batch "
            "of this account that the project still lists: there is nothing to fetch"
        )
    return completed


def _near(context: FetchContext, job_name: str) -> Located | None:
    """Return the job if this process has seen it, or if its name says which batch it is in.

    A gridmanager's job is ``batch#cluster.proc`` (``gahp.rst``, "BOINC_* commands").
    """
    told = job_name.rpartition("#")[0] or None
    for batch in (context.cache.batch_of(job_name), told):
        if batch is not None:
            found = _in_batch(context, batch, job_name, _has_result(job_name))
            if found is not None:
                return found
    return None


def _far(context: FetchContext, job_name: str) -> Located | None:
    """Look for the job in every batch of the account that is not retired, the newest first.

    Batches seen on the way are remembered: a batch that has been submitted gets no more jobs, so
    each is asked for once.
    """
    has_result = _has_result(job_name)

    def is_enough(view: BatchView) -> bool:
        return has_result(view) or (view.final and job_name not in view.jobs)

    for batch in sorted(context.cache.batches(), key=lambda batch: -batch.id):
        found = _in_batch(context, batch.id, job_name, is_enough)
        if found is not None:
            return found
    return None


def _has_result(job_name: str) -> Callable[[BatchView], bool]:
    def is_enough(view: BatchView) -> bool:
        job = view.jobs.get(job_name)
        return job is not None and job.canonical_instance_id != 0

    return is_enough


def _in_batch(
    context: FetchContext, batch: int | str, job_name: str, good: Callable[[BatchView], bool]
) -> Located | None:
    try:
        view = context.cache.view(batch, good)
    except (NotFound, NotOwner):
        return None
    job = view.jobs.get(job_name)
    return None if job is None else Located(view.batch.id, view.batch.app_name, job)
