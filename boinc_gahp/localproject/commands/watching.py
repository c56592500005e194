"""``local-project status``."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.commands.arguments import action_parser, opened
from boinc_gahp.states import BatchState
from boinc_gahp.terminal import Column, table
from boinc_gahp.text import size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boinc_gahp.terminal import Parser

_SHOWN_BATCHES = 20


def status(arguments: list[str], _config: str | None) -> int:
    """Print what a project contains and does."""
    options = status_parser().read(arguments)
    from boinc_gahp.localproject.status import status as of

    with opened(options.directory) as core:
        found = of(core)
    if options.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    for line in _lines(found):
        print(line)
    return 0


def status_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``status``."""
    parser = action_parser(
        "status",
        "Shows whether the project is running, and what it contains: batches, jobs by "
        "state, hosts and what they do, the back-end programs, apps, and users "
        "without their secrets.",
        (
            "boinc_gahp local-project status ~/project",
            "boinc_gahp local-project status ~/project --json | jq .jobs.done",
        ),
        "DIR [--json]",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return parser


def _lines(found: dict[str, Any]) -> Iterator[str]:
    from boinc_gahp.localproject.web.words import credit, speed

    state = "runs" if found["running"] else "does not run now"
    yield f"The project in {found['directory']} {state}; its address is {found['url']}"
    jobs = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in found["jobs"].items())
    yield f"Jobs: {jobs}"
    if found["notice"]:
        yield found["notice"]
    yield from _batches(found)
    yield from _table(
        "Hosts",
        ("name", "speed", "memory", "disk", "bandwidth", "credit", "behaviour", "running"),
        ("disk", "memory", "bandwidth", "speed", "credit", "behaviour"),
        (
            (
                host["name"],
                speed(host["speed"]),
                size(host["memory"]),
                size(host["disk"]),
                f"{size(host['bandwidth'])}/s",
                credit(host["credit"]),
                " ".join(host["behaviours"]) or "normal",
                " ".join(host["running"]) or ("idle" if host["active"] else "away"),
            )
            for host in found["hosts"]
        ),
    )
    now = time.time()
    yield from _table(
        "Programs",
        ("name", "passes", "handled", "last pass", "error"),
        ("passes", "handled"),
        (
            (
                program["name"],
                program["passes"],
                program["handled"],
                f"{now - program['last_time']:.0f} s ago" if program["last_time"] else "never",
                program["error"],
            )
            for program in found["programs"]
        ),
    )
    yield from _table(
        "Apps",
        ("name", "versions", "validator", "assimilator", "work generator"),
        ("work generator", "assimilator", "validator"),
        (
            (
                app["name"],
                " ".join(map(str, app["versions"])),
                app["validator"],
                app["assimilator"] or "-",
                app["work_generator"] or "-",
            )
            for app in found["apps"]
        ),
    )
    yield from _table(
        "Users",
        ("name", "submits to", "manages", "jobs at most", "credit"),
        ("jobs at most", "credit", "manages"),
        (
            (
                user["name"],
                " ".join(user["submits_to"]) or "-",
                " ".join(user["manages"]) or "-",
                user["max_jobs_in_progress"] or "-",
                credit(user["credit"]),
            )
            for user in found["users"]
        ),
    )


def _batches(found: dict[str, Any]) -> Iterator[str]:
    batches = found["batches"][:_SHOWN_BATCHES]
    without = found["jobs_without_batch"]
    if without["total"]:
        nothing = dict.fromkeys(("id", "app", "user"), "-")
        batches = [*batches, {**nothing, "name": "(jobs without a batch)", "jobs": without}]
    yield from _table(
        "Batches",
        ("id", "name", "app", "user", "state", "jobs", "done", "failed", "aborted"),
        ("app", "user"),
        (
            (
                *(batch[key] for key in ("id", "name", "app", "user")),
                BatchState[batch["state"].upper()].words if "state" in batch else "-",
                *(batch["jobs"][key] for key in ("total", "done", "failed", "aborted")),
            )
            for batch in batches
        ),
    )
    if found["number_of_batches"] > _SHOWN_BATCHES:
        yield f"  and {found['number_of_batches'] - _SHOWN_BATCHES} older ones"


def _table(
    title: str, head: Sequence[str], less: Sequence[str], rows: Iterable[Sequence[object]]
) -> Iterator[str]:
    """Yield a table's lines; narrow terminals lose the columns in ``less``, the first one first."""
    ranks = dict(zip(reversed(less), range(1, len(less) + 1), strict=True))
    columns = [Column(name, ranks.get(name, 0), minimum=16, middle=True) for name in head]
    texts = (tuple(map(str, row)) for row in rows)
    for number, line in enumerate(table.lines(columns, texts, sys.stdout, indent="  ")):
        if number == 0:
            yield f"\n{title}:"
        yield line
