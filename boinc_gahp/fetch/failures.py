"""How jobs without a result ended, as far as a project tells it."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from boinc_gahp.errors import JobNotFound, OutputError, RpcError
from boinc_gahp.fetch.job_end import JobEnd
from boinc_gahp.fetch.types import FetchResult
from boinc_gahp.states import STATUS_WORDS, JobState, job_state

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.locate import Located
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import CompletedJob, JobInfo

log = logging.getLogger("boinc_gahp.fetch")

#: How many jobs that are not over are looked at.
_FEW = 3
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
    end = learn(context, JobEnd(job))
    if not end.exit_statuses:
        raise OutputError(
            f"job {job_name!r} failed on {host} ({end.why}), and the project does not "
            "know its exit status: there is nothing to fetch"
        )
    elapsed = 0.0 if end.result is None else end.result.elapsed_time
    # A failed job never reports 0: its instances may have ended well, but the validator found them
    # wrong.
    result = FetchResult(end.exit_status or 1, elapsed, end.cpu_time or 0.0)
    return result, end.report(context.project.url)


def as_completed(
    context: FetchContext, batch_name: str, jobs: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    """Return a batch's jobs and statuses, with DONE for those whose program ran and failed.

    HTCondor 9 fetches such a job then, and completes it with the exit status that
    :func:`failed_job` gives; it would hold one in ERROR, and not say why
    (``gridmanager-boinc.rst``, "States"). If the project does not say why jobs failed, they stay in
    ERROR: other jobs of the batch must not wait for that.
    """
    if not any(job_state(status) is JobState.FAILED for _, status in jobs):
        return jobs

    def told(batch_id: int, name: str, status: str) -> str:
        if job_state(status) is not JobState.FAILED:
            return status
        job = context.cache.failures(batch_id, name)
        is_programs = job is not None and _is_over(job) and JobEnd(job).exit_code is not None
        return STATUS_WORDS[JobState.DONE] if is_programs else status

    try:
        batch_id = context.cache.view(batch_name, lambda _: True).batch.id
        return tuple((name, told(batch_id, name, status)) for name, status in jobs)
    except RpcError as error:
        log.warning("It is not known why jobs of batch %s failed: %s", batch_name, error)
        return jobs


def look_up_failure(
    context: FetchContext, job_name: str, batch_id: int, image: str | None = None
) -> JobEnd | None:
    """Return how a job in error ended; None if it is not in error (any more).

    Args:
        context: the project.
        job_name: the job's name.
        batch_id: its batch's.
        image: of a job in a container: its image.

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
                f"{context.project.host} has no job {job_name!r} in batch {view.batch.name!r} "
                f"(id {batch_id})",
                rpc="query_batch",
                host=context.project.host,
                number=-1,
                words=words,
                named=job_name,
            )
        return None
    return learn(context, JobEnd(job, image)) if _is_over(job) else None


def learn(context: FetchContext, end: JobEnd) -> JobEnd:
    """Return how a job in error ended, with its instances and a stderr if the project tells them.

    The exit statuses come from query_batch with details: query_completed_job breaks for a job
    without a canonical instance on PHP 8 (``web-rpcs.rst``, "query_completed_job").

    Raises nothing: if a request fails, its part is not known.
    """
    # If a job was aborted before any of its instances failed, there is nothing more to know.
    if end.is_aborted and not end.exit_statuses:
        return end
    completed = _completed(context, end.name)
    if completed is not None:
        end = end.with_completed(completed)
    return with_instances(context, end)


def unfinished_jobs(project: WebRpcs, batch_id: int) -> list[JobEnd]:
    """Return a few jobs of a batch that are not over, with their instances.

    They tell early what may be wrong with all. It takes a request for the list, and one for each.

    Raises:
        RpcError: the project could not be asked.
    """
    unfinished = (job for job in project.iter_jobs(batch_id) if not job.state.is_over)
    return [JobEnd(job, instances=project.query_job(job.id)) for job in islice(unfinished, _FEW)]


def attempts_words(jobs: Iterable[JobEnd], *, none_is_done: bool) -> str:
    """Return in words which attempts at jobs have failed so far; "": none.

    Args:
        jobs: the jobs, with their images.
        none_is_done: whether no job of their batch is done yet.
    """
    failed = [f"(job {job.name}): {attempt}" for job in jobs for attempt in job.failed_attempts]
    if not failed:
        return ""
    have = "attempt has" if len(failed) == 1 else "attempts have"
    before = "no job is done yet, and " if none_is_done else ""
    return f"{before}{len(failed)} {have} failed, the last {failed[-1]}"


def with_instances(context: FetchContext, end: JobEnd) -> JobEnd:
    """Return how a job ended, with its instances, or with the trouble that kept them unknown."""
    try:
        return replace(end, instances=context.project.query_job(end.id))
    except RpcError as error:
        log.debug("Cannot get the instances of the job %s: %s", end.name, error)
        return replace(end, trouble=error)


def _is_over(job: JobInfo) -> bool:
    return job.state is JobState.FAILED or bool(job.errors)


def _completed(context: FetchContext, job_name: str) -> CompletedJob | None:
    """Return what query_completed_job tells about a failed instance; None if it fails."""
    project = context.project.until(time.monotonic() + _TIMEOUT)
    try:
        completed = project.query_completed_job(job_name)
    except RpcError as error:
        log.debug("Cannot get the stderr of the failed job %s: %s", job_name, error)
        return None
    return completed if completed.error_resultid else None
