"""``boinc_gahp batch list``."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch import states
from boinc_gahp.cli.batch.jsons import batch_json, print_json
from boinc_gahp.cli.batch.opening import add_common, add_look, command, opened_to_look, whole_number
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal import table, words
from boinc_gahp.terminal.output import bar, coloured, print_lines, width_of
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.terminal.table import Column
from boinc_gahp.text import did_you_mean

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.project import Project
    from boinc_gahp.terminal.table import Cell

_DESCRIPTION = """\
Lists the batches of your account, newest first: progress, number of failed jobs, age, end (of
those in progress: what is left at the recent rate), and how long the project keeps them. A
narrow terminal shows fewer columns; output to a pipe has all of them.

Retired batches are not listed, because projects leave them out of their lists. "show" still finds
them by id.
"""

_STATES = [
    state.name.lower()
    for state in BatchState
    if state not in (BatchState.RETIRED, BatchState.UNKNOWN)
]

#: Names of HTCondor's batches: 9's (``gridmanager-boinc.rst``), and boinc_gahp's own for 10 and
#: later.
_OF_HTCONDOR = re.compile(r"condor#|bg-[0-9a-f]{32}\b")

#: From this width on, a bar is long.
_WIDE = 120

#: Names of batches differ in their ends: other columns are left out before these are cut.
_NAME = Column("name", minimum=24, middle=True)

_COLUMNS = (
    Column("id", right=True),
    _NAME,
    Column("app", rank=7, minimum=10),
    Column("state", rank=1),
    Column("", rank=6),
    Column("over", rank=3, right=True),
    Column("jobs", rank=1, right=True),
    Column("failed", rank=1, right=True),
    Column("age", rank=5, right=True),
    Column("end", rank=4),
    Column("kept for", rank=2, right=True),
)


def list_batches_parser(config: str | None = None) -> Parser:
    """Return the parser of ``batch list``."""
    parser = Parser(
        "batch list",
        _DESCRIPTION,
        examples=(
            "boinc_gahp batch list",
            "boinc_gahp batch list --state in_progress --state init",
            "boinc_gahp batch list --app uppercase --limit 20 --json",
        ),
    )
    parser.add_argument(
        "--state",
        action="append",
        choices=_STATES,
        metavar="STATE",
        help=f"only batches in this state; may be repeated: {', '.join(_STATES)}",
    )
    parser.add_argument(
        "--app",
        action="append",
        metavar="APP",
        help="only batches of this app; may be repeated",
    )
    parser.add_argument(
        "--limit", type=whole_number, metavar="N", help="show at most N batches, the newest ones"
    )
    add_look(parser)
    add_common(parser, config)
    return parser


def list_batches(arguments: list[str], config: str | None) -> int:
    """Print the batches; return 0."""
    options = list_batches_parser(config).read(arguments)
    with opened_to_look(options) as project:
        every = project.batches()
        chosen = [batch for batch in every if _is_wanted(batch, options.state, options.app)]
        batches = chosen if options.limit is None else chosen[: options.limit]
        if options.json:
            print_json({"project": project.url}, batches=map(batch_json, batches))
        elif not batches:
            print(_nothing(project, every, options.app))
        else:
            print_lines(table_lines(batches))
            if len(batches) < len(chosen):
                print(f"… and {len(chosen) - len(batches):,} older ones.")
            for batch in batches:
                # For a batch past its lease, this says little; HTCondor renews its own.
                silent = batch.lease_is_over or _OF_HTCONDOR.match(batch.name)
                print_lines(() if silent else lease_lines(options, batch))
    return 0


def table_lines(batches: Sequence[Batch]) -> Iterator[str]:
    """Yield the lines of a table of batches."""
    width = width_of(sys.stdout) or _WIDE
    name = replace(_NAME, minimum=max(24, width // 2))
    columns = [name if column is _NAME else column for column in _COLUMNS]
    found = map(batch_cells, batches)
    rows = ([each[column.title] for column in columns] for each in found)
    return table.lines(columns, rows, sys.stdout)


def batch_cells(batch: Batch) -> Mapping[str, Cell]:
    """Return a batch's cells by the titles of columns, in tables of batches; "" is its bar's."""
    now, counts = words.now(), batch.latest_counts
    state = ("gone", "red") if batch.gone else states.batch_words(batch)
    created = batch.info.create_time
    cells: dict[str, Cell] = defaultdict(str)
    cells |= {
        "id": str(batch.id),
        "name": batch.name,
        "app": batch.info.app_name,
        "state": state,
        "jobs": f"{batch.njobs:,}",
        "age": words.span(now - created) if created else "",
        "end": states.end_words(batch, now) if batch.is_over or batch.trouble is None else "",
        "kept for": states.lease_words(batch, now),
    }
    if batch.nerror_jobs:
        cells["failed"] = f"{batch.nerror_jobs:,}", "red"
    if batch.state is not BatchState.INIT:
        length = 20 if (width_of(sys.stdout) or _WIDE) >= _WIDE else 8
        cells[""] = bar(batch.fraction_done, length, sys.stdout), state[1]
        cells["over"] = words.percent(batch.fraction_done)
        numbers = {JobState.DONE: max(0, batch.nover - batch.nerror_jobs)}
        if counts is not None:
            numbers |= {JobState.QUEUED: counts.queued, JobState.IN_PROGRESS: counts.in_progress}
        cells |= {each.value: f"{number:,}" for each, number in numbers.items() if number}
    return cells


def lease_lines(options: Namespace, batch: Batch) -> Iterator[str]:
    """Yield remarks on leases that end soon, or that have ended their batch."""
    text = states.lease_warning(batch, words.now())
    if text and not batch.lease_is_over:
        text += f": {command(options, 'extend', batch.id, '--for', '30d')}"
    if text:
        yield coloured(text, "yellow", sys.stdout)


def _is_wanted(batch: Batch, wanted: list[str] | None, apps: list[str] | None) -> bool:
    return (wanted is None or batch.state.name.lower() in wanted) and (
        apps is None or batch.info.app_name in apps
    )


def _nothing(project: Project, others: Sequence[Batch], apps: list[str] | None) -> str:
    if others:
        known = {batch.app_name for batch in others}
        unknown = [app for app in apps or () if app not in known]
        near = did_you_mean(unknown[0], known) if unknown else ""
        number = words.count(len(others), "batch", "batches")
        return f"None of your {number} on {project.host} matches{near or '.'}"
    return (
        f"You have no batches on {project.host}, except retired ones, which are not listed. "
        '"boinc_gahp batch submit --help" tells how to make one.'
    )
