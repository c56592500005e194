"""``boinc_gahp ledger status``: whether there are problems, for people and for monitoring."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp import __version__
from boinc_gahp.cli.batch.jsons import document_of, print_json
from boinc_gahp.cli.ledger import showing
from boinc_gahp.cli.ledger.monitoring import REASONS, status_of
from boinc_gahp.config.places import expand
from boinc_gahp.errors import LedgerError
from boinc_gahp.files import write_whole
from boinc_gahp.ledger.monitoring import PERSISTENT_AFTER
from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.rows import ALIVE
from boinc_gahp.states import LEDGER_WORDS
from boinc_gahp.terminal import table
from boinc_gahp.terminal.output import coloured, print_lines
from boinc_gahp.terminal.parsing import Parser, declare
from boinc_gahp.terminal.table import Column
from boinc_gahp.terminal.words import at
from boinc_gahp.text import count, printable, size, span, visible

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boinc_gahp.cli.ledger.monitoring import Status
    from boinc_gahp.ledger.monitoring import Overview, Owed

    Labels = Mapping[str, str]
    #: By a metric's name: labels and values; no labels twice.
    Samples = Mapping[str, Sequence[tuple[Labels, float]]]

_DESCRIPTION = """\
Shows how this user's jobs from HTCondor are doing: jobs by state, the oldest job of each state,
when each project last answered a question about jobs, the requests that are still to be sent to
each project, and problems that someone should look at. Jobs that wait for volunteers for days are
not a problem. Jobs that HTCondor no longer asks about are called orphans. This command only reads,
asks no project, and can be used at any time; it does not create a ledger.

--textfile writes metrics for Prometheus' node_exporter. The file is replaced as a whole, with mode
644, even if something is wrong. Its name must end in .prom. Each user needs a file: {user} in the
name stands for the user. "-" prints the metrics.
"""
_EXAMPLES = (
    "boinc_gahp ledger status",
    "boinc_gahp ledger status --jobs --json",
    "boinc_gahp ledger status --textfile '/var/lib/boinc_gahp/metrics/{user}.prom'",
)

_OWNER = (
    Column("project", minimum=20, middle=True),
    Column("section", rank=3),
    Column("fingerprint", rank=4),
)
_PROJECTS = (
    *_OWNER,
    Column("daemon", rank=2),
    Column("last poll"),
    Column("to be sent", rank=1),
)
_STATES = (*_OWNER, Column("state"), Column("jobs", right=True), Column("oldest", right=True))
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


def run(options: Namespace) -> int:
    """Print or write it; return 1 if there are problems, else 0."""
    if options.textfile not in {None, "-"} and not options.textfile.endswith(".prom"):
        options.parser.error("the name of the file after --textfile must end in .prom")
    status = status_of(options.config, options.after, details=options.jobs)
    if options.textfile is not None:
        _write(options.textfile, "".join(f"{line}\n" for line in exposition(metrics(status))))
    elif options.json:
        print_json(document_of(status))
    else:
        _print(status)
    return 1 if status.problems else 0


def run_parser() -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser(
        "ledger status",
        _DESCRIPTION,
        examples=_EXAMPLES,
        statuses={
            0: "no problems",
            1: "someone should look into a problem, or the file cannot be written",
        },
    )
    jobs = "list also the batches and jobs that are not over, and what is wrong with them"
    how = {
        "--json": "print JSON",
        "--textfile FILE": "write metrics for Prometheus' node_exporter to FILE, and print nothing",
    }
    after = f"report problems that have lasted this long (default: {PERSISTENT_AFTER:g})"
    parser.takes({"--jobs": jobs})
    declare(parser.add_mutually_exclusive_group(), how)
    parser.takes({"--after SECONDS": after}, default=PERSISTENT_AFTER)
    return parser.with_common()


# -- for Prometheus


def _write(name: str, text: str) -> None:
    if name == "-":
        sys.stdout.write(text)
        return
    try:
        path = expand(name, Path.cwd())
    except ValueError as error:
        raise LedgerError(f"no metrics can be written to {name}: {error}") from error
    # node_exporter runs as another user.
    before = os.umask(0o022)
    try:
        write_whole(path, text, 0o644)
    except OSError as error:
        raise LedgerError(
            f"the metrics cannot be written to {path}: {error.strerror}; the user has to be able "
            f"to make files in {path.parent}"
        ) from error
    finally:
        os.umask(before)


# -- for people


def _print(status: Status) -> None:
    projects, problems, now = status.projects, status.problems, status.time
    if projects:
        _print_tables(status)
        details = [each.details for each in projects if each.details is not None]
        batches = [(row["notes"], _batch_cells(row)) for of in details for row in of["batches"]]
        jobs = [(row["notes"], _job_cells(row, now)) for of in details for row in of["jobs"]]
        _print_rows("Batches", _BATCHES, batches)
        _print_rows("Unfinished jobs", _JOBS, jobs)
    elif status.readable and status.ledger is not None:
        path = Path(status.ledger)
        empty = f"The ledger {path} is empty."
        print(showing.none_yet(path) if status.bytes is None else empty)
    if status.published_files:
        files = count(status.published_files, "input file")
        print(f"\nPublic as long as a job needs them: {files} ({size(status.published_bytes)}).")
    if problems:
        _title("\nProblems" if projects else "Problems")
        for each in problems:
            text = (
                f"{each.reason}: {showing.problem_words(each.project, each.since, each.text, now)}"
            )
            print("  " + coloured(text, "yellow", sys.stdout))
    elif projects:
        print("\nNo problems.")


def _print_tables(status: Status) -> None:
    projects, now = status.projects, status.time
    sections = [(each.url, showing.project_words(each.project_name)) for each in projects]
    names = [
        (*section, each.account if sections.count(section) > 1 else "")
        for section, each in zip(sections, projects, strict=True)
    ]
    _title("Projects")
    rows = []
    for name, each in zip(names, projects, strict=True):
        poll = "" if each.last_poll is None else f"{span(now - each.last_poll)} ago"
        rows.append((*name, _daemon(each), poll, _pending(each.owed)))
    print_lines(table.lines(_PROJECTS, rows, sys.stdout, indent="  "))
    told = {each.project for each in status.problems if each.reason in {"project", "stranded"}}
    for each in projects:
        if each.trouble and each.trouble_since and each.url not in told:
            text = f"trouble since {at(each.trouble_since)}: {each.trouble}"
            _print_notes([f"{printable(each.url)}: {printable(text)}"])
    jobs = [
        # With a single project, its name is not repeated.
        (
            *(name if len(names) > 1 else ("", "", "")),
            LEDGER_WORDS[row.state].words,
            f"{row.number:,}",
            "" if row.oldest is None else span(now - row.oldest),
        )
        for name, each in zip(names, projects, strict=True)
        for row in each.jobs
        if row.number
    ]
    _title("\nJobs")
    print_lines(table.lines(_STATES, jobs, sys.stdout, indent="  "))
    if not jobs:
        print("  none")


def _daemon(project: Overview) -> str:
    if project.daemon is None:
        return "?"
    if not project.daemon:
        return "none"
    return "runs" if project.process is None else f"process {project.process}"


def _pending(owed: Owed) -> str:
    aborts = sum(astuple(owed)) - owed.retirements
    numbers = {"abort": aborts, "retirement": owed.retirements}
    return ", ".join(count(number, what) for what, number in numbers.items() if number)


def _print_rows(
    title: str, columns: Sequence[Column], rows: Sequence[tuple[Iterable[str], tuple[str, ...]]]
) -> None:
    """Print a table with notes below its rows, if it has any."""
    if rows:
        _title(f"\n{title}")
    lines = table.lines(columns, (cells for _, cells in rows), sys.stdout, indent="  ")
    for (notes, _), line in zip(rows, lines, strict=True):
        print(line)
        _print_notes(notes)


def _batch_cells(batch: dict[str, Any]) -> tuple[str, ...]:
    alive = sum(number for state, number in batch["jobs"].items() if state in ALIVE)
    number = batch["project_batch_id"]
    return (
        batch["name"],
        batch["state_words"],
        f"{alive} of {count(sum(batch['jobs'].values()), 'job')} unfinished",
        batch["app_name"],
        "" if number is None else f"batch {number} of the project",
    )


def _job_cells(job: dict[str, Any], now: float) -> tuple[str, ...]:
    return (
        job["htcondor_id"],
        job["cluster_proc"] or job["job_directory"],
        job["state_words"],
        f"for {span(now - job['changed'])}",
        job["app_name"],
        job["job_name"] or "",
    )


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        print("      " + coloured(note, "yellow", sys.stdout))


def _title(text: str) -> None:
    print(coloured(text, "bold", sys.stdout))


# -- for programs


def exposition(samples: Samples) -> Iterator[str]:
    """Yield the lines of gauges in Prometheus' text format; those without samples are left out."""
    for metric, values in samples.items():
        if values:
            yield f"# HELP boinc_gahp_{metric} {_METRICS[metric]}"
            yield f"# TYPE boinc_gahp_{metric} gauge"
        for labels, value in values:
            inside = ",".join(f'{name}="{_quotable(words)}"' for name, words in labels.items())
            yield f"boinc_gahp_{metric}{{{inside}}} {value!r}"


def _quotable(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def metrics(status: Status) -> Samples:
    """Return all metrics of a user's jobs."""
    user = {"user": visible(text(status.user))}
    reasons = Counter(each.reason for each in status.problems)
    samples: dict[str, list[tuple[Labels, float | None]]] = {name: [] for name in _METRICS}
    for name, key in _OF_USERS.items():
        samples[name].append((user, getattr(status, key)))
    samples["build_info"].append(({**user, "version": __version__}, 1))
    samples["attention"] = [({**user, "reason": each}, reasons[each]) for each in REASONS]
    for project in status.projects:
        names = {"project": "url", "section": "project_name", "account": "account"}
        labels = {**user, **{label: visible(getattr(project, key)) for label, key in names.items()}}
        for name, key in _OF_PROJECTS.items():
            samples[name].append((labels, getattr(project, key)))
        for row in project.jobs:
            of_state = {**labels, "state": row.state}
            samples["jobs"].append((of_state, row.number))
            samples["oldest_job_timestamp_seconds"].append((of_state, row.oldest))
        samples["owed"] += [
            ({**labels, "kind": kind}, number) for kind, number in asdict(project.owed).items()
        ]
    return {
        name: [
            (labels, value if isinstance(value, float) else int(value))
            for labels, value in its
            if value is not None
        ]
        for name, its in samples.items()
    }


#: Names of metrics, and their HELP.
_METRICS = {
    "status_timestamp_seconds": "When these metrics were written, since the epoch.",
    "ledger_readable": "Whether the ledger could be read; 1 also where there was none yet.",
    "ledger_size_bytes": "The ledger's size, with its log.",
    "ledger_available_bytes": "Bytes that the user may still write on the ledger's disk.",
    "build_info": "The version of boinc_gahp; always 1.",
    "attention": "How many things a person should look at, by the reason.",
    "jobs": "Jobs in the ledger, by state.",
    "oldest_job_timestamp_seconds": "When the oldest job of a state was taken from HTCondor, since "
    "the epoch.",
    "owed": "Requests still to be sent: batches to be retired, batches and jobs to be aborted.",
    "orphaned_jobs": "Jobs that HTCondor has not asked about for as long as [htcondor] lease.",
    "last_poll_timestamp_seconds": "When the project last answered a question about jobs, since "
    "the epoch.",
    "last_asked_timestamp_seconds": "When HTCondor last asked about a job that is not over, since "
    "the epoch.",
    "trouble_timestamp_seconds": "When the problem with the project began, since the epoch.",
    "daemon_running": "Whether a process works for the project and account.",
    "account_known": "Whether the settings have the project and the account.",
}
#: Keys of the status that they have, of the user and of each project.
_OF_USERS = {
    "status_timestamp_seconds": "time",
    "ledger_readable": "readable",
    "ledger_size_bytes": "bytes",
    "ledger_available_bytes": "available_bytes",
}
_OF_PROJECTS = {
    "orphaned_jobs": "orphans",
    "last_poll_timestamp_seconds": "last_poll",
    "last_asked_timestamp_seconds": "last_asked",
    "trouble_timestamp_seconds": "trouble_since",
    "daemon_running": "daemon",
    "account_known": "known",
}
