"""Jobs that failed on the project: which ones HTCondor completes, and which ones it holds.

A job whose program ran and failed is completed with the program's exit status, unless the job or
the settings want it held; so HTCondor's retries work, above all DAGMan's RETRY. If the program is
not to blame, the job is held, so that a person looks into it.

HTCondor's HoldReason, or ExitReason, is one line, and often all that a scientist sees: it says
which job it was, where, what the project says, how the job ended on the volunteers' computers, and
what to do.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import (
    BatchNotFound,
    JobNotFound,
    RpcError,
)
from boinc_gahp.fetch.failures import look_up_failure
from boinc_gahp.htcondor._description import description_of
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.ledger.rows import Hold, ProgramFailure
from boinc_gahp.states import CANCELLED
from boinc_gahp.submit.query import query_jobs
from boinc_gahp.text import count, shorten

if TYPE_CHECKING:
    from boinc_gahp.errors import GahpError
    from boinc_gahp.fetch.job_end import JobEnd
    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.ledger.rows import BatchRow, JobRow

log = logging.getLogger("boinc_gahp.htcondor")

#: Errors that certainly mean that the project has no such job or batch.
IS_LOST = (BatchNotFound, JobNotFound)
#: Instances whose exit statuses are listed; the last ones matter.
_LISTED = 10
#: Characters of a stderr that are quoted.
_QUOTED = 300
#: Characters that the ledger keeps for a failed job's stderr file: of the stderr itself a project's
#: database keeps 64 kB (``web-rpcs.rst``).
_MAX_STDERR = 1 << 17
_AGAIN = "condor_release sends it again, as a new job"


def fail(context: AccountContext, job: JobRow) -> bool:
    """Find out why a job is in error on the project, and complete or hold it with that reason.

    A failure that is in the ledger stays, even if the job succeeds on the project later: HTCondor
    may know about it already, and a job must not both fail and succeed. Until then the project's
    latest answer counts.

    Returns:
        Whether there is nothing more to do: False if the project could not be reached, or now says
        that the job is not in error (with a late result an aborted job can still succeed).

    Raises:
        LedgerError: the ledger cannot be read or written.
    """
    batch = None if job.batch_id is None else context.jobs.batch(job.batch_id)
    if batch is None or batch.project_batch_id is None or job.job_name is None:
        return True  # it is in no batch (any more)
    try:
        end = look_up_failure(context.project, job.job_name, batch.project_batch_id, image_of(job))
    except RpcError as error:
        if lose_if_gone(context, job, batch, error):
            return True
        log.warning("It is not known why job %s failed: %s", job.job_name, error)
        return False
    if end is None:
        return False
    status = end.exit_status or 0
    if not CANCELLED.isdisjoint(end.job.errors):
        hold = Hold(_aborted(context, job, batch), HoldCode.ABORTED, 0)
    else:
        reason = reason_of(context, job, batch, end)
        if end.exit_code is not None and completes(context, job):
            text = _shortened(end.report(context.url))
            ended = ProgramFailure(end.exit_code, end.cpu_time, reason, text)
            context.jobs.program_failed(job.id, ended)
            log.info("Job %d is to be completed with exit code %d: %s", job.id, status, reason)
            return True
        hold = Hold(reason, HoldCode.FAILED, status)
    exit_code = status if end.exit_statuses else None
    context.jobs.hold([job.id], replace(hold, exit_code=exit_code, cpu_time=end.cpu_time))
    log.info("Job %d is held: %s", job.id, hold.reason)
    return True


def _shortened(text: str) -> str:
    if len(text) <= _MAX_STDERR:
        return text
    half = _MAX_STDERR // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"


def image_of(job: JobRow) -> str | None:
    """Return the image of a job in a container; None for an installed app."""
    description = description_of(job)
    container = description and description.container
    return str(container.image) if container else None


def completes(context: AccountContext, job: JobRow) -> bool:
    """Tell whether a job whose program failed is to be completed."""
    description = description_of(job)
    choice = description and description.failed_jobs
    return (choice or context.htcondor.failed_jobs) == "complete"


def lose_if_gone(context: AccountContext, job: JobRow, batch: BatchRow, error: GahpError) -> bool:
    """Hold a job if the project does not have it any more; return whether that is so.

    Args:
        context: what the account's manager shares with its parts.
        job: the job.
        batch: the job's batch.
        error: the project's last error. If it says that there is no such job, the project is asked
            again: with database trouble, it may not find a job that it has.

    Raises:
        LedgerError: the ledger cannot be written.
    """
    if not isinstance(error, IS_LOST):
        return False
    try:
        listed = query_jobs(context.project, batch.project_batch_id or 0)
        gone = listed.complete and job.job_name not in dict(listed.jobs)
    except RpcError as trouble:
        gone = isinstance(trouble, IS_LOST)
    if gone:
        lose(context, [job], batch)
    return gone


def lose(context: AccountContext, jobs: list[JobRow], batch: BatchRow) -> None:
    """Hold jobs of a batch that the project does not have any more.

    Raises:
        LedgerError: the ledger cannot be written.
    """
    host = host_of(context)
    reason = (
        f"the BOINC project {host} no longer has this job, which was in its batch {batch.name} "
        f"(id {batch.project_batch_id}): ask the project's admin what happened to the job; "
        f"{_AGAIN}"
    )
    context.jobs.hold([job.id for job in jobs], Hold(reason, HoldCode.LOST, 0))
    log.error(
        "%s of batch %s on hold: not on %s any more", count(len(jobs), "job"), batch.name, host
    )


def host_of(context: AccountContext) -> str:
    """Return the project's host as people know it."""
    return ProjectUrl(context.url).host


def _aborted(context: AccountContext, job: JobRow, batch: BatchRow) -> str:
    return (
        f"job {job.job_name} (batch id {batch.project_batch_id}) was aborted on the BOINC project "
        f"{host_of(context)}, not by HTCondor: on its web site, by its admin, or because the "
        f"project did not have to keep its batch longer; {_AGAIN}"
    )


def reason_of(context: AccountContext, job: JobRow, batch: BatchRow, end: JobEnd) -> str:
    """Return the reason to tell a failed job's owner, on one line."""
    parts = [
        f"job {job.job_name} (batch id {batch.project_batch_id}) failed on the BOINC project "
        f"{host_of(context)}: {shorten(end.why)}"
    ]
    statuses = end.exit_statuses
    if any(statuses):
        listed = ", ".join(map(str, statuses[-_LISTED:]))
        dots = "..., " if len(statuses) > _LISTED else ""
        parts.append(f"exit statuses on the volunteers' computers: {dots}{listed}")
    completed = end.exit_code is not None and completes(context, job)
    parts += filter(None, [end.advice or end.hint, "" if completed else _AGAIN])
    if end.other_states:
        parts.append(f"states of its instances: {shorten(end.other_states)}")
    stderr = shorten((end.stderr or "")[-_QUOTED:], _QUOTED)
    if stderr:
        parts.append(f"its stderr ends: {stderr}")
    return "; ".join(parts)
