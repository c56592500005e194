"""``boinc_gahp ledger show``; and what all actions share: opening the ledger to read it, words."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from boinc_gahp.config.layers import load
from boinc_gahp.config.places import ledger_file
from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.rows import HTCONDOR_HAS_ASKED
from boinc_gahp.ledger.store import Store
from boinc_gahp.states import LEDGER_WORDS
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.terminal.words import at
from boinc_gahp.text import printable, span

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.ledger.rows import BatchRow, JobRow

#: A batch's states.
BATCH_WORDS = {
    "planned": "to be sent",
    "sent": "being sent",
    "submitted": "on the project",
    "giving_up": "to be aborted",
    "ended": "to be retired",
    "retired": "over",
}

#: Those of batches that are not over.
UNFINISHED = tuple(state for state in BATCH_WORDS if state != "retired")

_CLUSTER_PROC = re.compile(r"_([0-9]+\.[0-9]+)_[0-9]+\Z")


def exists(path: Path) -> bool:
    """Tell whether there is a ledger; raises LedgerError if one is lost, or may be there."""
    try:
        path.stat()
    except FileNotFoundError:
        must_not_be_lost(path)
        return False
    except OSError as error:
        raise LedgerError(
            f"the ledger {path} cannot be opened: {error.strerror}; it can be read only by the "
            "user whose jobs are in it"
        ) from error
    return True


def must_not_be_lost(path: Path) -> None:
    """Raise LedgerError if there is no ledger where daemons have worked with one."""
    lock = next(path.parent.glob("account-*.lock"), None)
    if lock is not None and not any(path.parent.glob(path.name)):
        raise LedgerError(
            f"the ledger {path} was here and is gone ({lock.name} is still there): bring it back "
            "before the next job makes an empty one, or, if it is lost, abort its jobs on the "
            'project ("The ledger is lost" in the documentation)'
        )


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
    with closing(Store(path, read_only=read_only)) as store:
        yield JobLedger(store)


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
            f"orphan: HTCondor has not asked for {span(now - job.last_polled)}, so the project "
            "does not keep its batch longer"
        )
    elif job.state in {"waiting", "finished"} and now - job.last_polled > HTCONDOR_HAS_ASKED:
        notes.append(
            "it goes on when HTCondor asks about it, which it has not done for "
            f"{span(now - job.last_polled)}"
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
        notes.append(f"the project has not had to keep it for {span(now - batch.lease_until)}")
    if batch.trouble and batch.state != "retired":
        again = f"; tried again at {at(batch.not_before)}" if batch.not_before > now else ""
        notes.append(printable(batch.trouble) + again)
    return notes


# -- the action

#: With more jobs than this, the user has to name one.
_MANY = 20

_DESCRIPTION = """\
Shows everything that is known about a job or a batch. This command only reads.

Name a job by its number in the ledger, its id (boinc/<token>.<number>), its cluster and process in
HTCondor's queue (12.0), its JobDirectory or a part of it, or its name on the project. Name a batch
by its name or the beginning of it.
"""
_EXAMPLES = ("boinc_gahp ledger show 12.0", "boinc_gahp ledger show 7 --json")


def run(options: Namespace) -> int:
    """Print what was found; return 0."""
    settings = load(options.config)
    with existing(settings) as ledger:
        jobs, batches = find(ledger, options.name)
        if options.json:
            print(json.dumps(_as_json(ledger, jobs, batches, settings), indent=1))
        else:
            shown = [list(_job_lines(ledger, job, settings)) for job in jobs]
            shown += [list(_batch_lines(ledger, batch)) for batch in batches]
            print("\n\n".join("\n".join(lines) for lines in shown))
    return 0


def run_parser() -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser("ledger show", _DESCRIPTION, examples=_EXAMPLES)
    parser.takes({"JOB|BATCH": "a job or a batch, as described above"}, dest="name")
    return parser.with_common(json="print JSON")


def find(jobs: JobLedger, name: str) -> tuple[list[JobRow], list[BatchRow]]:
    """Return the jobs, or else the batches, that ``name`` may mean.

    Raises:
        LedgerError: there is none, there are too many, or the ledger cannot be read.
    """
    found = jobs.find_jobs(name)
    batches = [] if found else jobs.find_batches(name)
    number = len(found) + len(batches)
    if number == 0:
        raise LedgerError(
            f"the ledger {jobs.store.path} has no job or batch {name!r}; boinc_gahp ledger status "
            "--jobs lists those that are not over"
        )
    if number > _MANY:
        raise LedgerError(
            f"{name!r} may mean {number} jobs or batches in the ledger: be more specific"
        )
    return found, batches


def _job_lines(jobs: JobLedger, job: JobRow, settings: Settings) -> Iterator[str]:
    now = time.time()
    reported = "yes" if job.end_reported else "no"
    yield f"Job {jobs.htcondor_id(job)}"
    yield from _lines(
        {
            "state": f"{_state(job)} since {at(job.changed)}",
            "in HTCondor's queue": cluster_proc(job),
            "JobDirectory": job.job_directory,
            "attempt": job.attempt if job.attempt > 1 else None,
            "project": f"{job.project_url} {project_words(job.project_name)}",
            "account": f"fingerprint {job.account}",
            "app": job.app_name,
            "on the project": job.job_name,
            "accepted": at(job.accepted),
            "last asked about": f"{at(job.last_polled)}, {span(now - job.last_polled)} ago",
            "end reported to HTCondor": None if job.is_alive else reported,
            "exit code": job.exit_code if job.signal is None else None,
            "ended by signal": job.signal,
            "CPU time": None if job.cpu_time is None else f"{job.cpu_time:g} s",
            "outputs being written": "yes" if job.writing else None,
        }
    )
    for note in job_notes(job, settings.htcondor.lease, now):
        yield f"  ! {note}"
    yield "  asked for:"
    yield from _description(job.description)
    batch = None if job.batch_id is None else jobs.batch(job.batch_id)
    if batch is not None:
        yield from _batch_lines(jobs, batch)


def _state(job: JobRow) -> str:
    shown = state_words(job)
    # One that HTCondor holds is cancelled, too.
    return shown if job.state in {shown, "cancelled"} else f"{shown} ({job.state})"


def _batch_lines(jobs: JobLedger, batch: BatchRow) -> Iterator[str]:
    now = time.time()
    counts = jobs.counts(batch.id)
    yield f"Batch {printable(batch.name)}"
    yield from _lines(
        {
            "state": f"{BATCH_WORDS[batch.state]} ({batch.state})",
            "project": batch.project_url,
            "app": batch.app_name,
            "id on the project": batch.project_batch_id,
            "made": at(batch.created),
            "kept until": at(batch.lease_until),
            "jobs": ", ".join(f"{counts[state]} {LEDGER_WORDS[state].words}" for state in counts)
            or "none",
        }
    )
    for note in batch_notes(batch, now):
        yield f"  ! {note}"


def _lines(values: dict[str, object]) -> Iterator[str]:
    known = {key: value for key, value in values.items() if value is not None}
    width = max(map(len, known)) + 2
    for key, value in known.items():
        yield f"  {key + ':':<{width}}{printable(str(value))}"


def _description(text: str) -> Iterator[str]:
    """Yield what a job asked for, as far as it can be read."""
    values = _asked(text)
    for key, value in (values if isinstance(values, dict) else {"description": values}).items():
        if key in {"job_directory", "app_name"} or value in (None, [], ""):
            continue
        many = value if isinstance(value, list) and key != "args" else [value]
        for each in many:
            yield f"    {printable(str(key))}: {printable(_as_text(each))}"


def _asked(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_json(
    ledger: JobLedger, jobs: list[JobRow], batches: list[BatchRow], settings: Settings
) -> dict[str, Any]:
    now = time.time()
    return {
        "jobs": [
            {
                **job_columns(ledger, job, settings.htcondor.lease, now),
                "description": _asked(job.description),
            }
            for job in jobs
        ],
        "batches": [batch_columns(ledger, batch, now) for batch in batches],
    }
