"""``boinc_gahp ledger status``: whether there are problems, for people and for monitoring."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.ledger import metrics, words
from boinc_gahp.cli.ledger.monitoring import check
from boinc_gahp.config import expand
from boinc_gahp.files import write_whole
from boinc_gahp.ledger import PERSISTENT_AFTER, STATES
from boinc_gahp.states import LEDGER_WORDS
from boinc_gahp.terminal import Column, Parser, coloured, moment, not_empty, table
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.cli.ledger.monitoring import Finding, Status, WatchedOwner

_DESCRIPTION = """\
Shows how this user's jobs from HTCondor are doing: jobs by state, the oldest job of each state,
when each project last answered a question about jobs, the requests owed to each project, and
problems that someone should look at. Jobs that wait for volunteers for days are not a problem. This
command only reads, asks no project, and can be used at any time; it does not create a ledger.

--textfile writes metrics for Prometheus' node_exporter. The file is replaced as a whole, with mode
644, even if something is wrong. Its name must end in .prom. Each user needs a file: {user} in the
name stands for the user. "-" prints the metrics.
"""
_EXAMPLES = (
    "boinc_gahp ledger status",
    "boinc_gahp ledger status --json",
    "boinc_gahp ledger status --textfile '/var/lib/boinc_gahp/metrics/{user}.prom'",
)

_PROJECTS = (
    Column("project", minimum=20, middle=True),
    Column("section", rank=3),
    Column("account key", rank=4),
    Column("daemon", rank=2),
    Column("last poll"),
    Column("owed", rank=1),
)
_JOBS = (
    Column("project", minimum=20, middle=True),
    Column("section", rank=3),
    Column("account key", rank=4),
    Column("state"),
    Column("jobs", right=True),
    Column("oldest", right=True),
)


def run(arguments: list[str], config: str | None) -> int:
    """Print or write it; return 1 if there are problems, else 0."""
    options = run_parser(config).read(arguments)
    status = check(options.config, options.after)
    if options.textfile is not None:
        _write(options.textfile, metrics.exposition(metrics.families(status)))
    elif options.json:
        print(json.dumps(_as_json(status), indent=1))
    else:
        _print(status)
    return 1 if status.findings else 0


def run_parser(config: str | None = None) -> Parser:
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
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print JSON")
    parser.completes(
        how.add_argument(
            "--textfile",
            metavar="FILE",
            type=not_empty,
            help="write metrics for Prometheus' node_exporter to FILE, and print nothing",
        ),
        "file",
    )
    parser.add_argument(
        "--after",
        type=words.positive("seconds"),
        default=PERSISTENT_AFTER,
        metavar="SECONDS",
        help=f"report problems that have lasted this long (default: {PERSISTENT_AFTER:g})",
    )
    parser.add_config(config)
    return parser


# -- for Prometheus


def _write(name: str, text: str) -> None:
    if name == "-":
        sys.stdout.write(text)
        return
    try:
        path = expand(name, Path.cwd())
    except ValueError as error:
        raise words.LedgerActionRefused(f"no metrics can be written to {name}: {error}") from error
    # node_exporter runs as another user.
    before = os.umask(0o022)
    try:
        write_whole(path, text, 0o644)
    except OSError as error:
        raise words.LedgerActionRefused(
            f"the metrics cannot be written to {path}: {error.strerror}; the user has to be able "
            f"to make files in {path.parent}"
        ) from error
    finally:
        os.umask(before)


# -- for people


def _print(status: Status) -> None:
    if status.owners:
        _print_tables(status)
    elif status.is_readable and status.path is not None:
        empty = f"The ledger {status.path} is empty."
        print(words.none_yet(status.path) if status.nbytes is None else empty)
    if status.findings:
        _title("\nProblems" if status.owners else "Problems")
        for each in status.findings:
            print("  " + coloured(_finding_words(each, status.now), "yellow", sys.stdout))
    elif status.owners:
        print("\nNo problems.")


def _finding_words(each: Finding, now: float) -> str:
    ago = f" for {words.span(now - each.since)}" if each.since is not None else ""
    place = "" if each.url is None else f"{words.printable(each.url)}{ago}: "
    return f"{each.reason}: {place}{words.printable(each.text)}"


def _print_tables(status: Status) -> None:
    known = Counter(_named(owner)[:2] for owner in status.owners)
    names = [
        (*_named(owner)[:2], owner.overview.account if known[_named(owner)[:2]] > 1 else "")
        for owner in status.owners
    ]
    _title("Projects")
    rows = [
        (*name, _daemon(owner), _poll(owner, status.now), _pending(owner))
        for name, owner in zip(names, status.owners, strict=True)
    ]
    for line in table.lines(_PROJECTS, rows, sys.stdout, indent="  "):
        print(line)
    jobs = [
        # With a single project, its name is not repeated.
        (*(name if len(names) > 1 else ("", "", "")), *row)
        for name, owner in zip(names, status.owners, strict=True)
        for row in _states(owner, status.now)
    ]
    _title("\nJobs")
    for line in table.lines(_JOBS, jobs, sys.stdout, indent="  "):
        print(line)
    if not jobs:
        print("  none")


def _named(owner: WatchedOwner) -> tuple[str, str]:
    its = owner.overview
    return its.url, words.project_words(its.project_name)


def _daemon(owner: WatchedOwner) -> str:
    if owner.has_daemon is None:
        return "?"
    if not owner.has_daemon:
        return "none"
    return "runs" if owner.process is None else f"process {owner.process}"


def _poll(owner: WatchedOwner, now: float) -> str:
    polled = owner.overview.polled
    return "" if polled is None else f"{words.span(now - polled)} ago"


def _pending(owner: WatchedOwner) -> str:
    its = owner.overview
    aborts = its.aborts + its.batch_aborts + len(its.submit_aborts)
    return ", ".join(
        words.count(number, what)
        for number, what in ((aborts, "abort"), (its.retirements, "retirement"))
        if number
    )


def _states(owner: WatchedOwner, now: float) -> Iterator[tuple[str, str, str]]:
    its = owner.overview
    for state in STATES:
        number = getattr(its.job_counts, state)
        if number:
            since = (its.oldest or {}).get(state)
            age = "" if since is None else words.span(now - since.accepted)
            yield LEDGER_WORDS[state].words, f"{number:,}", age


def _title(text: str) -> None:
    print(coloured(text, "bold", sys.stdout))


# -- for programs


def _as_json(status: Status) -> dict[str, Any]:
    return {
        "user": status.user,
        "time": moment(status.now),
        "ledger": None if status.path is None else str(status.path),
        "readable": status.is_readable,
        "bytes": status.nbytes,
        "available_bytes": status.available,
        "projects": [_owner_json(owner) for owner in status.owners],
        "look_at": [
            {
                "reason": each.reason,
                "project": each.url,
                "account": each.account,
                "since": moment(each.since),
                "text": visible(each.text),
            }
            for each in status.findings
        ],
    }


def _owner_json(owner: WatchedOwner) -> dict[str, Any]:
    its = owner.overview
    oldest = its.oldest or {}
    return {
        "url": its.url,
        "project_name": its.project_name,
        "account": its.account,
        "known": owner.is_known,
        "daemon": owner.has_daemon,
        "last_poll": moment(its.polled),
        "last_asked": moment(its.last_polled),
        "trouble": None if its.trouble is None else visible(its.trouble.text),
        "trouble_since": None if its.trouble is None else moment(its.trouble.since),
        "orphans": its.orphans,
        "owed": metrics.pending_counts(owner),
        "jobs": [
            {
                "state": state,
                "number": getattr(its.job_counts, state),
                "oldest": moment(oldest[state].accepted) if state in oldest else None,
            }
            for state in STATES
        ],
    }
