"""The stderr of jobs, and what else is known about how each of them ended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from boinc_gahp.api import finding
from boinc_gahp.api._fetching_batch import check_answers, fetch_streams
from boinc_gahp.api.endings import (
    ended_badly,
    may_have_ended_badly,
    program_note,
    ran_programs,
    stream,
)
from boinc_gahp.api.folders import folder_name
from boinc_gahp.api.reasons import why
from boinc_gahp.api.types import JobState
from boinc_gahp.errors import OutputError, RpcError
from boinc_gahp.fetch.failures import failure_of
from boinc_gahp.fetch.stderr import unwrap
from boinc_gahp.threads import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.folders import Note
    from boinc_gahp.rpc.types import JobInfo, ResultInfo

__all__ = ["JobLog", "log_of", "logs_of", "page_of"]

#: How many jobs are asked about at a time.
_THREADS = 4
#: A project's web page about an instance; it shows the stderr (``html/user/result.php``).
_PAGE = "result.php?resultid="


@dataclass(frozen=True, slots=True)
class JobLog:
    """What is known about how a job ended.

    Attributes:
        name: the job's name.
        id: its number on the project.
        state: its state.
        why: of a failed job: why it failed, on one line; otherwise "".
        exit_statuses: of a failed job: one for each instance that failed; of a job that is done:
            that of its canonical instance.
        stderr: what the job wrote to its stderr; None: it is not over, or the project does not
            tell. Few projects tell the stderr of failed jobs (``web-rpcs.rst``,
            "query_completed_job").
        instances: of a failed job: its instances, with the project's words for their states; empty
            if they are not known.
        trouble: why the project could not be asked about this job; None: it could.
        stdout: what the job's program wrote to its standard output; None: it is not over, or the
            job ran an app.
    """

    name: str
    id: int
    state: JobState
    why: str = ""
    exit_statuses: tuple[int, ...] = ()
    stderr: str | None = None
    instances: tuple[ResultInfo, ...] = ()
    trouble: RpcError | None = None
    stdout: str | None = None


def page_of(project: str, instance: ResultInfo) -> str:
    """Return the address of a project's web page that shows the stderr of an instance.

    On a project as BOINC ships it, one must be logged in to see it (``html/user/result.php``).
    """
    return f"{project}{_PAGE}{instance.id}"


def logs_of(
    batch: Batch,
    *,
    jobs: Iterable[int | str] | None = None,
    wanted: Callable[[JobState], bool] | None = None,
) -> Iterator[JobLog]:
    """Yield what is known of each job, in order; asks the project about each job that is over.

    Args:
        batch: the batch.
        jobs: names or ids of jobs; None: all.
        wanted: tells by their states which of these to yield; None: all. A job whose program is
            known to have ended badly counts as failed.

    Raises:
        NoSuchJob: one of ``jobs`` does not exist.
        RpcError: the project could not be asked for the jobs, or stopped answering.
    """
    session = batch.project.session
    listed = finding.find_jobs(session, batch.id, batch.name, jobs)
    bad: dict[str, Note] = {}
    if may_have_ended_badly(batch):
        listed = list(listed)
        bad = ended_badly(batch, listed)

    def counts_as(job: JobInfo) -> JobState:
        return JobState.FAILED if job.name in bad else job.state

    chosen = (job for job in listed if wanted is None or wanted(counts_as(job)))
    yield from in_order(partial(log_of, batch), chosen, threads=_THREADS, name="logs")


def log_of(batch: Batch, job: JobInfo) -> JobLog:
    """Return what is known of a job; asks the project about it if it is over.

    Raises:
        RpcError: the project does not answer any more, or refuses the account.
    """
    session = batch.project.session
    if job.state is JobState.FAILED:
        failure = failure_of(session.context, job)
        if failure.trouble is not None:
            check_answers(session, failure.trouble)
        return JobLog(
            job.name,
            job.id,
            job.state,
            why(job, lease_is_over=batch.lease_is_over),
            job.exit_statuses,
            failure.stderr or None,
            failure.instances,
            failure.trouble,
        )
    if job.state is not JobState.DONE:
        return JobLog(job.name, job.id, job.state)
    if ran_programs(batch):
        return _of_program(batch, job)
    try:
        completed = session.rpc.query_completed_job(job.name)
    except RpcError as error:
        check_answers(session, error)
        return JobLog(job.name, job.id, job.state, trouble=error)
    return JobLog(
        job.name,
        job.id,
        job.state,
        "",
        (completed.exit_status,),
        unwrap(completed.stderr_out),
    )


def _of_program(batch: Batch, job: JobInfo) -> JobLog:
    """Return what is known of a program that has ended; what was fetched is not asked for again."""
    root = batch.directory
    note = program_note(batch, job, root)
    if note is not None and root is not None:
        return _told(job, note, root / folder_name(job.name))
    with TemporaryDirectory(prefix="boinc_gahp-") as room:
        try:
            note = fetch_streams(batch, job, Path(room, "job"))
        except RpcError as error:
            check_answers(batch.project.session, error)
            return JobLog(job.name, job.id, job.state, trouble=error)
        except OutputError as error:
            return JobLog(job.name, job.id, job.state, why=str(error))
        if note is None:
            return JobLog(job.name, job.id, job.state)
        return _told(job, note, Path(room, "job"))


def _told(job: JobInfo, note: Note, folder: Path) -> JobLog:
    state = JobState.FAILED if note.failure else job.state
    return JobLog(
        job.name,
        job.id,
        state,
        note.failure,
        () if note.exit_status is None else (note.exit_status,),
        stream(folder, note.stderr),
        stdout=stream(folder, note.stdout),
    )
