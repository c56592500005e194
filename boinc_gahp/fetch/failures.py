"""What is known about a job without a result: its exit status, and a text for its stderr."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import JobNotFound, OutputError, RpcError
from boinc_gahp.fetch.stderr import unwrap
from boinc_gahp.fetch.types import Failure, FetchResult
from boinc_gahp.states import CANCELLED, ERROR_MEANINGS, JobState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.locate import Located
    from boinc_gahp.rpc.types import CompletedJob, JobInfo, ResultInfo

log = logging.getLogger("boinc_gahp.fetch")

#: Seconds for query_completed_job, which fails on most projects for such a job.
_TIMEOUT = 10.0


def failed_job(context: FetchContext, job_name: str, located: Located) -> tuple[FetchResult, str]:
    """Return the real exit status of a failed job, and the text for its stderr.

    Raises:
        OutputError: the job is not finished, or it failed and no exit status is known.
        RpcError: the project could not be reached.
    """
    host = context.project.host
    job = context.cache.failures(located.batch_id, job_name)
    if job is None or not _is_over(job):
        state = job.status if job is not None and job.status else "no result, no error"
        raise OutputError(
            f"job {job_name!r} on {host} is not finished (the project says: {state}): its output "
            "can be fetched when its status is DONE"
        )
    learned = _collect(context, job)
    if learned.result is None:
        raise OutputError(
            f"job {job_name!r} failed on {host} ({learned.why}), and the project does not "
            "know its exit status: there is nothing to fetch"
        )
    return learned.result, learned.report + ("\n" + learned.stderr if learned.completed else "")


def look_up_failure(context: FetchContext, job_name: str, batch_id: int) -> Failure | None:
    """Return what is known about a job in error; None if it is not in error (any more).

    Raises:
        NotFound: the project has no such batch, or the batch no such job.
        RpcError: the project could not be reached.
    """
    job = context.cache.failures(batch_id, job_name)
    if job is None:
        view = context.cache.view(batch_id, lambda view: job_name in view.jobs)
        if job_name not in view.jobs:
            words = f"no job {job_name}"
            raise JobNotFound(
                f"{context.project.host} has no job {job_name!r} in batch {view.name!r} "
                f"(id {batch_id})",
                rpc="query_batch",
                host=context.project.host,
                number=-1,
                words=words,
                named=job_name,
            )
        return None
    return failure_of(context, job) if _is_over(job) else None


def failure_of(context: FetchContext, job: JobInfo) -> Failure:
    """Return what is known about a job that query_batch, with details, shows to be in error.

    Raises nothing: if a request fails, its part is not known.
    """
    learned = _collect(context, job)
    return Failure(
        job.errors,
        learned.why,
        job.exit_statuses,
        learned.report,
        learned.stderr,
        learned.result,
        learned.trouble,
        learned.instances,
    )


@dataclass(frozen=True, slots=True)
class _Learned:
    why: str
    report: str
    stderr: str
    completed: bool
    result: FetchResult | None
    trouble: RpcError | None
    instances: tuple[ResultInfo, ...]


def _is_over(job: JobInfo) -> bool:
    return job.state is JobState.FAILED or bool(job.errors)


def _collect(context: FetchContext, job: JobInfo) -> _Learned:
    """Ask for everything about a failed job.

    The exit statuses come from query_batch with details: query_completed_job breaks for a job
    without a canonical instance on PHP 8 (``web-rpcs.rst``, "query_completed_job").
    """
    # If a job was aborted before any of its instances failed, there is nothing more to know.
    asks = bool(job.exit_statuses) or not CANCELLED.issuperset(job.errors)
    completed = _completed(context, job.name) if asks else None
    statuses = (
        job.exit_statuses if completed is None else (*job.exit_statuses, completed.exit_status)
    )
    why = ", ".join(_words(job)) or "no reason given"
    result = None
    if statuses:
        result = FetchResult(
            # After the last one the project gave up the job. A failed job never reports 0: its
            # instances may have ended well, but the validator found them wrong.
            next((status for status in reversed(statuses) if status), 1),
            0.0 if completed is None else completed.elapsed_time,
            (job.cpu_time or 0.0) if completed is None else completed.cpu_time,
        )
    instances, trouble = _instances(context, job) if asks else ((), None)
    return _Learned(
        why,
        _report(context, job, why, instances) if asks else "",
        "" if completed is None else unwrap(completed.stderr_out),
        completed is not None,
        result,
        trouble,
        instances,
    )


def _completed(context: FetchContext, job_name: str) -> CompletedJob | None:
    """Return what query_completed_job tells about a failed instance; None if it fails."""
    project = context.project.until(time.monotonic() + _TIMEOUT)
    try:
        completed = project.query_completed_job(job_name)
    except RpcError as error:
        log.debug("Cannot get the stderr of the failed job %s: %s", job_name, error)
        return None
    return completed if completed.error_resultid else None


def _words(job: JobInfo) -> list[str]:
    return [
        f"{word}: {ERROR_MEANINGS[word]}" if word in ERROR_MEANINGS else word for word in job.errors
    ]


def _instances(
    context: FetchContext, job: JobInfo
) -> tuple[tuple[ResultInfo, ...], RpcError | None]:
    """Return a job's instances, or why they are not known."""
    try:
        return context.project.query_job(job.id), None
    except RpcError as error:
        log.debug("Cannot get the instances of the failed job %s: %s", job.name, error)
        return (), error


def _report(context: FetchContext, job: JobInfo, why: str, instances: Iterable[ResultInfo]) -> str:
    """Return lines for people."""
    lines = [f"boinc_gahp: job {job.name} failed on {context.project.url} ({why})"]
    if job.exit_statuses:
        lines.append("exit statuses of its instances: " + ", ".join(map(str, job.exit_statuses)))
    lines += [f"instance {instance.name}: {instance.state}" for instance in instances]
    return "\n".join(lines) + "\n"
