"""What the actions of ``boinc_gahp ledger`` share: opening the ledger to read it, and words."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from boinc_gahp.config.places import ledger_file
from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.store import Store
from boinc_gahp.states import LEDGER_WORDS
from boinc_gahp.terminal.words import at
from boinc_gahp.text import printable, span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.ledger.rows import BatchRow, JobRow

#: A batch's states.
BATCH_WORDS = {
    "planned": "to be sent",
    "sent": "being sent",
    "submitted": "on the project",
    "giving_up": "being given up",
    "ended": "to be retired",
    "retired": "over",
}

#: Those of batches that are not over.
UNFINISHED = tuple(state for state in BATCH_WORDS if state != "retired")

_CLUSTER_PROC = re.compile(r"_([0-9]+\.[0-9]+)_[0-9]+\Z")


def exists(path: Path) -> bool:
    """Tell whether there is a ledger; raises LedgerError if that cannot be found out."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LedgerError(
            f"the ledger {path} cannot be opened: {error.strerror}; it can be read only by the "
            "user whose jobs are in it"
        ) from error
    return True


def none_yet(path: Path) -> str:
    """Return the message if there is no ledger."""
    return f"There is no ledger {path} yet; the first job creates it."


@contextmanager
def opened(settings: Settings, *, read_only: bool = True) -> Iterator[JobLedger | None]:
    """Open this user's ledger; None if there is none yet. Raises LedgerError."""
    path = ledger_file(settings)
    if not exists(path):
        yield None
        return
    store = Store(path, read_only=read_only)
    try:
        yield JobLedger(store)
    finally:
        store.close()


@contextmanager
def existing(settings: Settings, *, read_only: bool = True) -> Iterator[JobLedger]:
    """Open this user's ledger; raises LedgerError, also if there is none yet."""
    with opened(settings, read_only=read_only) as ledger:
        if ledger is None:
            raise LedgerError(none_yet(ledger_file(settings)))
        yield ledger


def cluster_proc(job: JobRow) -> str | None:
    """Return a job's id in HTCondor's queue, from its JobDirectory, if that has one."""
    found = _CLUSTER_PROC.search(job.job_directory)
    return found[1] if found else None


def state_words(job: JobRow) -> str:
    """Return the state of a job for people."""
    if job.state == "cancelled" and job.hold_reason is not None:
        return LEDGER_WORDS["failed"].words  # HTCondor cancels a job that it has put on hold
    state = LEDGER_WORDS[job.state]
    if job.exit_reason is not None and state.failed:
        return state.failed.format(job.exit_code)
    return state.words


def project_words(name: str) -> str:
    """Return the section of the settings with which a project's jobs were accepted."""
    return f"[projects.{printable(name)}]" if name else "[project]"


def is_orphan(job: JobRow, orphaned_after: float, now: float) -> bool:
    """Tell whether HTCondor has not asked about a live job for ``orphaned_after`` s."""
    return job.is_alive and now - job.last_polled > orphaned_after


def job_columns(jobs: JobLedger, job: JobRow, orphaned_after: float, now: float) -> dict[str, Any]:
    """Return a job as the ledger has it, without its description, and what it tells people."""
    values = job._asdict()
    del values["description"]
    return {
        **values,
        "htcondor_id": jobs.htcondor_id(job),
        "cluster_proc": cluster_proc(job),
        "orphan": is_orphan(job, orphaned_after, now),
        "state_words": state_words(job),
        "notes": job_notes(job, orphaned_after, now),
    }


def batch_columns(jobs: JobLedger, batch: BatchRow, now: float) -> dict[str, Any]:
    """Return a batch as the ledger has it, its jobs by state, and what it tells people."""
    return {
        **batch._asdict(),
        "jobs": jobs.counts(batch.id),
        "state_words": BATCH_WORDS[batch.state],
        "notes": batch_notes(batch, now),
    }


def problem_words(project: str | None, since: float | None, text: str, now: float) -> str:
    """Return a problem for people, on one line."""
    ago = f" for {span(now - since)}" if since else ""
    place = f"{printable(project)}{ago}: " if project else ""
    return f"{place}{printable(text)}"


def job_notes(job: JobRow, orphaned_after: float, now: float) -> list[str]:
    """Return problems that somebody may want to solve."""
    notes = []
    if is_orphan(job, orphaned_after, now):
        notes.append(
            f"orphan: HTCondor has not asked for {span(now - job.last_polled)}; its lease is not "
            "renewed"
        )
    # HTCondor cancels a job after putting it on hold.
    if job.hold_reason is not None and not job.is_alive:
        notes.append(
            f"{printable(job.hold_reason or '')} (code {job.hold_code}, subcode {job.hold_subcode})"
        )
    if job.exit_reason is not None and job.hold_reason is None:
        notes.append(printable(job.exit_reason))
    if job.trouble and job.is_alive:
        notes.append(printable(job.trouble))
    if job.abort_pending:
        notes.append("it is still to be aborted on the project")
    return notes


def batch_notes(batch: BatchRow, now: float) -> list[str]:
    """Return problems that somebody may want to solve."""
    notes = []
    if batch.state in {"planned", "sent", "submitted"} and batch.lease_until < now:
        notes.append(f"its lease ended {span(now - batch.lease_until)} ago")
    if batch.trouble and batch.state != "retired":
        again = f"; tried again at {at(batch.not_before)}" if batch.not_before > now else ""
        notes.append(printable(batch.trouble) + again)
    return notes
