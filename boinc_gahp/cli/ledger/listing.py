"""``boinc_gahp ledger list``."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.ledger import words
from boinc_gahp.cli.ledger.wrong import wrong, wrong_words
from boinc_gahp.config import ledger_file
from boinc_gahp.htcondor import owner_key
from boinc_gahp.ledger import ALIVE, STATES, Owner, all_pending_aborts
from boinc_gahp.states import LEDGER_WORDS
from boinc_gahp.terminal import Column, Parser, coloured, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.cli.ledger.words import Opened
    from boinc_gahp.config import Settings
    from boinc_gahp.ledger import BatchRow, JobCounts, JobRow, PersistentProblem, Trouble

_DESCRIPTION = """\
Lists projects, batches and unfinished jobs. For each project it shows problems, and the requests
that are still owed to it, such as aborts. Jobs that HTCondor no longer asks about are called
orphans. The last lines show problems that have lasted for an hour, and projects and accounts that
are not in the settings. This command only reads.
"""
_EXAMPLES = (
    "boinc_gahp ledger list",
    "boinc_gahp ledger list --state failed --state waiting",
    "boinc_gahp ledger list --all --json",
)

_BATCHES = (
    Column(minimum=24, middle=True),
    Column(),
    Column(rank=1),
    Column(rank=3, minimum=10),
    Column(rank=2),
)
#: The second is its name in HTCondor, or else its directory.
_JOBS = (
    Column(),
    Column(minimum=16, middle=True),
    Column(),
    Column(rank=1),
    Column(rank=3, minimum=10),
    Column(rank=2, minimum=16, middle=True),
)


@dataclass(frozen=True, slots=True)
class _Project:
    owner: Owner
    job_counts: JobCounts
    trouble: Trouble | None
    aborts: int
    jobs: Sequence[JobRow] = ()
    batches: Sequence[BatchRow] = ()
    submit_aborts: Sequence[BatchRow] = ()

    @property
    def retirements(self) -> int:
        return sum(batch.state == "ended" for batch in self.batches)

    @property
    def batch_aborts(self) -> int:
        return sum(batch.state == "giving_up" for batch in self.batches)


@dataclass(slots=True)
class _Found:
    projects: list[_Project] = field(default_factory=list)
    counts: dict[int, dict[str, int]] = field(default_factory=dict)
    wrong: list[PersistentProblem] = field(default_factory=list)


def run(arguments: list[str], config: str | None) -> int:
    """Print the lists; return 1 if a problem has lasted for an hour, else 0."""
    options = run_parser(config).read(arguments)
    settings = words.settings_of(options)
    with words.opened(settings) as ledger:
        if ledger is None:
            path = ledger_file(settings)
            empty: dict[str, Any] = {
                "ledger": str(path),
                "token": None,
                "projects": [],
                "wrong": [],
            }
            print(json.dumps(empty) if options.json else words.none_yet(path))
            return 0
        found = _find(ledger, options.state, options.all, options.project)
        now = words.now()
        found.wrong = [
            each for each in wrong(ledger.jobs, settings, now) if _chosen(each, options.project)
        ]
        if options.json:
            print(json.dumps(_as_json(ledger, found, settings), indent=1))
        else:
            _print(ledger, found, settings, batches=options.state is None)
    return 1 if found.wrong else 0


def run_parser(config: str | None = None) -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser(
        "ledger list",
        _DESCRIPTION,
        examples=_EXAMPLES,
        statuses={
            1: "there is a problem that has lasted for an hour, or the ledger cannot be read"
        },
    )
    parser.add_argument(
        "--state",
        action="append",
        choices=STATES,
        metavar="STATE",
        help=f"list only jobs in this state; may be repeated: {', '.join(STATES)}",
    )
    parser.add_argument("--all", action="store_true", help="also list finished jobs")
    parser.completes(
        parser.add_argument(
            "--project", metavar="NAME", help="a [projects.NAME], or a part of a URL"
        ),
        "project",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_config(config)
    return parser


def _find(ledger: Opened, states: list[str] | None, everything: bool, only: str | None) -> _Found:
    jobs = ledger.jobs
    owners = jobs.all_owners()
    submit_aborts: dict[tuple[str, str], list[BatchRow]] = {}
    listed = {owner_key(each.url, each.account) for each in owners}
    for batch in all_pending_aborts(ledger.store):
        key = owner_key(batch.project_url, batch.account)
        if key not in listed | submit_aborts.keys():
            owners.append(Owner(batch.project_url, batch.account, ""))
        submit_aborts.setdefault(key, []).append(batch)
    if only is not None:
        chosen = [owner for owner in owners if _chosen(owner, only)]
        if not chosen:
            known = ", ".join(f"{owner.url} ({owner.project_name})" for owner in owners)
            raise words.LedgerActionRefused(
                f"the ledger has nothing of a project {only!r}; it has {known or 'no project'}"
            )
        owners = chosen
    found = _Found()
    for owner in owners:
        mine = (owner.url, owner.account)
        pending = submit_aborts.get(owner_key(*mine), [])
        wanted = states or (STATES if everything else tuple(ALIVE | {"failed"}))
        rows = jobs.listed(*mine, wanted, pending=states is None)
        if states is None and not everything:
            # HTCondor takes care of a job on hold if it knows of the hold.
            rows = [row for row in rows if row.state != "failed" or not row.end_reported]
        batches = jobs.listed_batches(*mine, retired=everything)
        found.counts.update((batch.id, jobs.counts(batch.id)) for batch in batches)
        found.projects.append(
            _Project(
                owner,
                jobs.job_counts(*mine),
                jobs.troubles().get(mine),
                len(jobs.pending_aborts(*mine)),
                rows,
                batches,
                pending,
            )
        )
    return found


def _chosen(each: Owner | PersistentProblem, only: str | None) -> bool:
    return only is None or only == each.project_name or only in each.url


def _print(ledger: Opened, found: _Found, settings: Settings, *, batches: bool) -> None:
    now = words.now()
    if not found.projects:
        print(f"The ledger {ledger.path} is empty.")
        return
    _print_lists(ledger, found, settings, now, batches=batches)
    if found.wrong:
        _title("\nProblems")
        for each in found.wrong:
            print("  " + coloured(wrong_words(each, now), "yellow", sys.stdout))


def _print_lists(
    ledger: Opened, found: _Found, settings: Settings, now: float, *, batches: bool
) -> None:
    _title("Projects")
    accounts = Counter((each.owner.url, each.owner.project_name) for each in found.projects)
    for project in found.projects:
        owner = project.owner
        _print_project(project, now, with_account=accounts[owner.url, owner.project_name] > 1)
    known = [batch for project in found.projects for batch in project.batches]
    if batches and known:
        _title("\nBatches")
        cells = (_batch_cells(batch, found.counts[batch.id]) for batch in known)
        shown = table.lines(_BATCHES, cells, sys.stdout, indent="  ")
        for batch, line in zip(known, shown, strict=True):
            print(line)
            _print_notes(words.batch_notes(batch, now))
    rows = [job for project in found.projects for job in project.jobs]
    if not rows:
        print("\nNo job is under way." if batches else "\nNo such jobs.")
        return
    _title("\nJobs")
    cells = (
        (
            words.job_id(ledger.jobs, job),
            words.cluster_proc(job) or job.job_directory,
            words.state_words(job),
            f"for {words.span(now - job.changed)}",
            job.app_name,
            job.job_name or "",
        )
        for job in rows
    )
    for job, line in zip(rows, table.lines(_JOBS, cells, sys.stdout, indent="  "), strict=True):
        print(line)
        _print_notes(words.job_notes(job, settings.htcondor.lease, now))


def _print_project(project: _Project, now: float, *, with_account: bool) -> None:
    owner = project.owner
    states = [
        f"{number} {LEDGER_WORDS[state].words}"
        for state, number in asdict(project.job_counts).items()
        if number
    ]
    section = words.project_words(owner.project_name)
    if with_account:
        section += f" account key {owner.account}"
    print(f"  {words.printable(owner.url)} {section}: {', '.join(states) or 'no jobs'}")
    if project.trouble is not None:
        since = (
            f"since {words.at(project.trouble.since)} ({words.span(now - project.trouble.since)})"
        )
        print("    " + coloured(f"trouble {since}:", "yellow", sys.stdout), end=" ")
        print(words.printable(project.trouble.text))
    pending = [
        words.count(number, one, many)
        for number, one, many in (
            (project.aborts, "job to be aborted", "jobs to be aborted"),
            (project.retirements, "batch to be retired", "batches to be retired"),
            (project.batch_aborts, "batch to be given up", "batches to be given up"),
        )
        if number
    ]
    for batch in project.submit_aborts:
        is_given_up = batch.state == "giving_up"
        what = "to be aborted" if is_given_up else "whose submission was cut short"
        pending.append(f"batch {words.printable(batch.name)} {what}")
    if pending:
        print("    owed: " + ", ".join(pending))


def _batch_cells(batch: BatchRow, counts: dict[str, int]) -> tuple[str, ...]:
    alive = sum(number for state, number in counts.items() if state in ALIVE)
    return (
        batch.name,
        words.BATCH_WORDS[batch.state],
        f"{alive} of {words.count(sum(counts.values()), 'job')} unfinished",
        batch.app_name,
        "" if batch.project_batch_id is None else f"batch {batch.project_batch_id} of the project",
    )


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        print("      " + coloured(note, "yellow", sys.stdout))


def _title(text: str) -> None:
    print(coloured(text, "bold", sys.stdout))


def _as_json(ledger: Opened, found: _Found, settings: Settings) -> dict[str, Any]:
    """Return the lists as the ledger has them; times in seconds since the epoch."""
    now = words.now()
    return {
        "ledger": str(ledger.path),
        "token": ledger.jobs.token,
        "projects": [
            {
                **project.owner._asdict(),
                "tally": asdict(project.job_counts),
                "trouble": None if project.trouble is None else project.trouble.text,
                "trouble_since": None if project.trouble is None else project.trouble.since,
                "owed": {
                    "aborts": project.aborts,
                    "retirements": project.retirements,
                    "giving_up": project.batch_aborts,
                    "debts": [_abort_as_json(batch) for batch in project.submit_aborts],
                },
                "batches": [
                    {**columns(batch), "jobs": found.counts[batch.id]} for batch in project.batches
                ],
                "jobs": [
                    as_json(ledger, job, settings.htcondor.lease, now) for job in project.jobs
                ],
            }
            for project in found.projects
        ],
        "wrong": [each._asdict() for each in found.wrong],
    }


def _abort_as_json(batch: BatchRow) -> dict[str, Any]:
    return {
        "batch_name": batch.name,
        "batch_id": batch.project_batch_id,
        "kind": "abort" if batch.state == "giving_up" else "submitting",
        "due": batch.not_before,
        "sent": batch.sent,
    }


#: Columns of the ledger, which JSON shows, by the attributes of rows that are not called so.
_COLUMNS = {
    "group_key": "together",
    "last_polled": "asked",
    "end_reported": "told",
    "abort_pending": "abort_owed",
}


def columns(row: JobRow | BatchRow) -> dict[str, Any]:
    """Return a row of the ledger by the names of its columns."""
    return {_COLUMNS.get(name, name): value for name, value in row._asdict().items()}


def as_json(ledger: Opened, job: JobRow, orphaned_after: float, now: float) -> dict[str, Any]:
    """Return a job as the ledger has it, without its description."""
    values = columns(job)
    del values["description"]
    return {
        **values,
        "htcondor_id": words.job_id(ledger.jobs, job),
        "cluster_proc": words.cluster_proc(job),
        "orphan": words.is_orphan(job, orphaned_after, now),
    }
