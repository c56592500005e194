"""Jobs that failed on the project, and what their owner is told.

HTCondor's HoldReason is one line, and often all that a scientist sees: it says which job it was,
where, what the project says, how the job ended on the volunteers' computers, and what can be done.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from boinc_gahp.blah.codes import HoldCode
from boinc_gahp.errors import (
    BatchNotFound,
    JobNotFound,
    RpcError,
)
from boinc_gahp.ledger.jobs import Hold
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from boinc_gahp.blah.kept import Kept
    from boinc_gahp.bridge import Failure
    from boinc_gahp.errors import GahpError
    from boinc_gahp.ledger.jobs import BatchRow, JobRow

log = logging.getLogger("boinc_gahp.blah")

#: The project's words for a job that somebody aborted (bits of its error_mask).
_ABORTED = frozenset({"cancelled", "canceled"})

#: What BOINC's client means by an exit status that is not the program's own
#: (``lib/error_numbers.h``), or Windows by one of its.
_EXITS = {
    -131: "an output file is larger than the app's output template allows (max_nbytes)",
    -161: "an output file was missing",
    -185: "the program could not be started",
    -186: "an input file could not be downloaded",
    -187: "an output file could not be uploaded",
    193: "a signal ended the program: it crashed",
    194: "the BOINC client aborted it",
    195: "the program that the app ran has failed",
    196: "it used more disk than allowed: ask for more with BoincRscDiskBound",
    197: "it ran for longer than allowed: ask for more with BoincRscFpopsBound",
    198: "it used more memory than allowed: ask for more with BoincRscMemoryBound",
    200: "it had not begun when its deadline came",
    202: "the project aborted it",
    203: "the volunteer aborted it",
    205: "it ran out of memory",
    -1073741819: "the program crashed on Windows: access violation",
    -1073741515: "the program lacks a DLL on Windows",
    -1073740940: "the program crashed on Windows: heap corruption",
    -1073741571: "the program crashed on Windows: stack overflow",
}
#: The project says that it has no such job or batch, and not something else.
IS_LOST = (BatchNotFound, JobNotFound)
#: Instances whose exit statuses are listed; those that count are the last.
_LISTED = 10
#: Characters of a stderr that are quoted.
_QUOTED = 300
_AGAIN = "condor_release sends it again, as a new job"


def fail(kept: Kept, job: JobRow) -> bool:
    """Learn why a job is in error on the project, and hold it for that.

    A failure that is in the ledger stays, even if the job should turn out well on the project
    later: HTCondor may have been told by then, and the same job must not both fail and succeed.
    Until it is there, the project has the last word.

    Returns:
        Whether there is nothing more to do: False if the project could not be asked, or says by now
        that the job is not in error (a result that came late can end an aborted job well).

    Raises:
        LedgerError: the ledger cannot be read or written.
    """
    batch = None if job.batch_id is None else kept.jobs.batch(job.batch_id)
    if batch is None or batch.project_batch_id is None or job.job_name is None:
        return True  # it is in no batch (any more)
    try:
        failure = kept.bridge.failure(job.job_name, batch.project_batch_id)
    except RpcError as error:
        if lose_if_gone(kept, job, batch, error):
            return True
        log.warning("It is not known why job %s failed: %s", job.job_name, error)
        return False
    if failure is None:
        return False
    aborted = not _ABORTED.isdisjoint(failure.words)
    status = last_status(failure)
    if aborted:
        hold = Hold(_aborted(kept, job, batch), HoldCode.ABORTED, 0)
    else:
        hold = Hold(reason_of(kept, job, batch, failure), HoldCode.FAILED, status)
    result = failure.result
    kept.jobs.fail(job.id, hold, status if result else None, result.cpu_time if result else None)
    log.info("Job %d is held: %s", job.id, hold.reason)
    return True


def lose_if_gone(kept: Kept, job: JobRow, batch: BatchRow, error: GahpError) -> bool:
    """Hold a job that the project does not have any more; return whether.

    Args:
        kept: what the keeper gives to its parts.
        job: in question.
        batch: the job's.
        error: what the project has just said. If that is that it has no such job, it is asked once
            more: in trouble with its database, it may not find what it has.

    Raises:
        LedgerError: the ledger cannot be written.
    """
    if not isinstance(error, IS_LOST):
        return False
    try:
        look = kept.bridge.look_at(batch.project_batch_id or 0)
        gone = look.complete and job.job_name not in dict(look.jobs)
    except RpcError as trouble:
        gone = isinstance(trouble, IS_LOST)
    if gone:
        lose(kept, [job], batch)
    return gone


def lose(kept: Kept, jobs: list[JobRow], batch: BatchRow) -> None:
    """Hold jobs of a batch that the project does not have any more.

    Raises:
        LedgerError: the ledger cannot be written.
    """
    host = host_of(kept)
    reason = (
        f"the BOINC project {host} does not have this job any more, which was in its batch "
        f"{batch.name} (id {batch.project_batch_id}): its admin may know what became of it; "
        f"{_AGAIN}"
    )
    kept.jobs.hold([job.id for job in jobs], Hold(reason, HoldCode.LOST, 0))
    log.error("%d jobs of batch %s are held: %s does not have them", len(jobs), batch.name, host)


def last_status(failure: Failure) -> int:
    """Return the last exit status that is not 0; 0 if there is none."""
    told = () if failure.exit_statuses or failure.result is None else (failure.result.exit_status,)
    return next((status for status in reversed((*told, *failure.exit_statuses)) if status), 0)


def host_of(kept: Kept) -> str:
    """Return the project's host as people know it."""
    return urlsplit(kept.url).netloc.rpartition("@")[2]


def _aborted(kept: Kept, job: JobRow, batch: BatchRow) -> str:
    return (
        f"job {job.job_name} (batch id {batch.project_batch_id}) was aborted on the BOINC project "
        f"{host_of(kept)}, not by HTCondor: on its web site, by its admin, or because its batch's "
        f"lease had run out; {_AGAIN}"
    )


def reason_of(kept: Kept, job: JobRow, batch: BatchRow, failure: Failure) -> str:
    """Return what to tell a failed job's owner, on one line."""
    parts = [
        f"job {job.job_name} (batch id {batch.project_batch_id}) failed on the BOINC project "
        f"{host_of(kept)}: {shorten(failure.why)}"
    ]
    statuses = failure.exit_statuses
    if statuses:
        listed = ", ".join(map(str, statuses[-_LISTED:]))
        dots = "..., " if len(statuses) > _LISTED else ""
        parts.append(f"exit statuses on the volunteers' computers: {dots}{listed}")
        parts += [
            f"{status} as a rule means: {_EXITS[status]}"
            for status in dict.fromkeys(statuses[-_LISTED:])
            if status in _EXITS
        ]
    stderr = shorten(failure.stderr[-_QUOTED:], _QUOTED)
    if stderr:
        parts.append(f"its stderr ends: {stderr}")
    return "; ".join(parts)
