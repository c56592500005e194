"""``boinc_gahp ledger show``."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.ledger import words
from boinc_gahp.config.layers import load
from boinc_gahp.errors import LedgerError
from boinc_gahp.states import LEDGER_WORDS
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.terminal.words import at
from boinc_gahp.text import printable, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.ledger.jobs import JobLedger
    from boinc_gahp.ledger.rows import BatchRow, JobRow

#: With more jobs than this, the user has to name one.
_MANY = 20

_DESCRIPTION = """\
Shows everything that is known about a job or a batch. This command only reads.

Name a job by its number in the ledger, its id (boinc/<token>.<number>), its cluster and process in
HTCondor's queue (12.0), its JobDirectory or a part of it, or its name on the project. Name a batch
by its name or the beginning of it.
"""
_YES = {True: "yes", False: "no"}
_EXAMPLES = ("boinc_gahp ledger show 12.0", "boinc_gahp ledger show 7 --json")


def run(arguments: list[str], config: str | None) -> int:
    """Print what was found; return 0."""
    options = run_parser(config).read(arguments)
    settings = load(options.config)
    with words.existing(settings) as ledger:
        jobs, batches = find(ledger, options.name)
        if options.json:
            print(json.dumps(_as_json(ledger, jobs, batches, settings), indent=1))
        else:
            shown = [list(_job_lines(ledger, job, settings)) for job in jobs]
            shown += [list(_batch_lines(ledger, batch)) for batch in batches]
            print("\n\n".join("\n".join(lines) for lines in shown))
    return 0


def run_parser(config: str | None = None) -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser("ledger show", _DESCRIPTION, examples=_EXAMPLES)
    parser.takes({"JOB|BATCH": "a job or a batch, as described above"}, dest="name")
    return parser.with_common(config, json="print JSON")


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
    yield f"Job {jobs.htcondor_id(job)}"
    yield from _lines(
        {
            "state": f"{_state(job)} since {at(job.changed)}",
            "in HTCondor's queue": words.cluster_proc(job),
            "JobDirectory": job.job_directory,
            "attempt": job.attempt if job.attempt > 1 else None,
            "project": f"{job.project_url} {words.project_words(job.project_name)}",
            "account": f"key {job.account}",
            "app": job.app_name,
            "on the project": job.job_name,
            "accepted": at(job.accepted),
            "last asked about": f"{at(job.last_polled)}, {span(now - job.last_polled)} ago",
            "end reported to HTCondor": None if job.is_alive else _YES[job.end_reported],
            "exit code": job.exit_code if job.signal is None else None,
            "ended by signal": job.signal,
            "CPU time": None if job.cpu_time is None else f"{job.cpu_time:g} s",
            "outputs being written": "yes" if job.writing else None,
        }
    )
    for note in words.job_notes(job, settings.htcondor.lease, now):
        yield f"  ! {note}"
    yield "  asked for:"
    yield from _description(job.description)
    batch = None if job.batch_id is None else jobs.batch(job.batch_id)
    if batch is not None:
        yield from _batch_lines(jobs, batch)


def _state(job: JobRow) -> str:
    shown = words.state_words(job)
    # One that HTCondor holds is cancelled, too.
    return shown if job.state in {shown, "cancelled"} else f"{shown} ({job.state})"


def _batch_lines(jobs: JobLedger, batch: BatchRow) -> Iterator[str]:
    now = time.time()
    counts = jobs.counts(batch.id)
    yield f"Batch {printable(batch.name)}"
    yield from _lines(
        {
            "state": f"{words.BATCH_WORDS[batch.state]} ({batch.state})",
            "project": batch.project_url,
            "app": batch.app_name,
            "id on the project": batch.project_batch_id,
            "made": at(batch.created),
            "lease until": at(batch.lease_until),
            "jobs": ", ".join(f"{counts[state]} {LEDGER_WORDS[state].words}" for state in counts)
            or "none",
        }
    )
    for note in words.batch_notes(batch, now):
        yield f"  ! {note}"


def _lines(values: dict[str, object]) -> Iterator[str]:
    known = {key: value for key, value in values.items() if value is not None}
    width = max(map(len, known)) + 2
    for key, value in known.items():
        yield f"  {key + ':':<{width}}{printable(str(value))}"


def _description(text: str) -> Iterator[str]:
    """Yield what a job asked for, as far as it can be read."""
    try:
        values = json.loads(text)
    except ValueError:
        values = {"description": text}
    if not isinstance(values, dict):
        values = {"description": values}
    for key, value in values.items():
        if key in {"job_directory", "app_name"} or value in (None, [], ""):
            continue
        many = value if isinstance(value, list) and key != "args" else [value]
        for each in many:
            yield f"    {printable(str(key))}: {printable(_as_text(each))}"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_json(
    ledger: JobLedger, jobs: list[JobRow], batches: list[BatchRow], settings: Settings
) -> dict[str, Any]:
    now = time.time()
    shown = []
    for job in jobs:
        try:
            description = json.loads(job.description)
        except ValueError:
            description = job.description
        values = words.job_columns(ledger, job, settings.htcondor.lease, now)
        shown.append({**values, "description": description})
    return {
        "jobs": shown,
        "batches": [words.batch_columns(ledger, batch, now) for batch in batches],
    }
