"""``boinc_gahp ledger forget``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from boinc_gahp.cli.ledger import words
from boinc_gahp.cli.ledger.showing import find
from boinc_gahp.config.layers import load
from boinc_gahp.config.places import ledger_file
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.store import Store
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.text import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.ledger.rows import BatchRow, JobRow

_DESCRIPTION = """\
Deletes jobs from the ledger (see boinc_gahp ledger show --help; a batch means all its jobs). If
HTCondor asks about a deleted job later, the job is unknown, and HTCondor puts it on hold.
Unfinished jobs, and jobs that the project has yet to abort, are deleted only with --alive. They
then continue on the project: nothing is aborted or retired, and no outputs are fetched. Jobs that
have ended are deleted without this command, after the time that [htcondor] history sets.
"""

_ALIVE = """\
{jobs} unfinished, or still to be aborted on the project. Forgetting a job does not abort it: it
continues on the project until it ends or its batch's lease ends, and its outputs are not fetched.
"""


def run(arguments: list[str], config: str | None) -> int:
    """Drop the named jobs and batches; return 0, or 1 if that was not done."""
    options = run_parser(config).read(arguments)
    settings = load(options.config)
    path = ledger_file(settings)
    if not words.exists(path):
        raise words.LedgerActionRefused(words.none_yet(path))
    store = Store(path)
    try:
        jobs = JobLedger(store)
        rows, batches = _named(jobs, options.names)
        if not options.alive:
            _refuse_alive(jobs, rows)
        ids = [row.id for row in rows]
        batch_ids = [batch.id for batch in batches]
        living = [row for row in rows if _is_alive(row)]
        if living:
            print(_ALIVE.rstrip().format(jobs=count(len(living), "job is", "jobs are")))
        return _forget(jobs, ids, batch_ids, alive=options.alive, ask=not options.yes)
    finally:
        store.close()


def run_parser(config: str | None = None) -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser(
        "ledger forget",
        _DESCRIPTION,
        examples=("boinc_gahp ledger forget 12.0", "boinc_gahp ledger forget 12.0 13.0 --yes"),
        statuses={1: "nothing was deleted: stderr says why, or you answered no"},
    )
    parser.add_argument(
        "names", metavar="JOB|BATCH", nargs="+", help="what to delete; a batch means all its jobs"
    )
    parser.add_argument("--alive", action="store_true", help="also delete unfinished jobs")
    parser.add_argument("--yes", action="store_true", help="do not ask, even on a terminal")
    parser.add_config(config)
    return parser


def _named(jobs: JobLedger, names: Sequence[str]) -> tuple[list[JobRow], list[BatchRow]]:
    """Return the jobs and batches with these names; the jobs of these batches are included."""
    rows: dict[int, JobRow] = {}
    batches: dict[int, BatchRow] = {}
    for name in names:
        found, of_name = find(jobs, name)
        if len(found) + len(of_name) > 1:
            several = [jobs.htcondor_id(row) for row in found]
            several += [batch.name for batch in of_name]
            raise words.LedgerActionRefused(
                f"{name!r} may mean {', '.join(several)}: name one of them"
            )
        for batch in of_name:
            batches[batch.id] = batch
            found = jobs.jobs_of(batch.id)
        rows.update((row.id, row) for row in found)
    return list(rows.values()), list(batches.values())


def _is_alive(row: JobRow) -> bool:
    return row.is_alive or row.abort_pending


def _refuse_alive(jobs: JobLedger, rows: Sequence[JobRow]) -> None:
    living = [row for row in rows if _is_alive(row)]
    if not living:
        return
    first = living[0]
    others = f", and {len(living) - 1} more like it" if len(living) > 1 else ""
    if first.is_alive:
        state, remedy = words.state_words(first), "Remove it with condor_rm"
    else:
        state = "cancelled, but not aborted on the project yet"
        remedy = "Abort it with boinc_gahp ledger reconcile"
    raise words.LedgerActionRefused(
        f"nothing was forgotten: job {jobs.htcondor_id(first)} is {state}{others}. {remedy}, or "
        "use --alive: then it continues on the project, and nobody aborts it"
    )


def _forget(
    jobs: JobLedger, ids: Sequence[int], batches: Sequence[int], *, alive: bool, ask: bool
) -> int:
    what = count(len(ids), "job")
    if batches:
        what += f" and {count(len(batches), 'batch', 'batches')}"
    if ask and sys.stdin.isatty():
        answer = input(f"Forget {what}? [y/N] ")
        if answer.strip().lower() not in {"y", "yes"}:
            print("Nothing was forgotten.")
            return 1
    forgotten = jobs.forget(ids, batches, alive=alive)
    print(f"Forgotten: {count(forgotten, 'job')}.")
    left = [batch_id for batch_id in batches if jobs.batch(batch_id) is not None]
    if left:
        print("The batch stays until it is retired on the project.")
    return 0
