"""``local-project status``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.commands.arguments import action_parser, opened
from boinc_gahp.states import BatchState
from boinc_gahp.terminal import table
from boinc_gahp.terminal.table import Column
from boinc_gahp.text import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.terminal.parsing import Parser

_SHOWN_BATCHES = 20


def status(arguments: list[str], _config: str | None) -> int:
    """Print what a project contains and does."""
    options = status_parser().read(arguments)
    with opened(options.directory) as core:
        found = _contents(core)
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
        "state, hosts and what they do, and the back-end programs.",
        (
            "boinc_gahp local-project status ~/project",
            "boinc_gahp local-project status ~/project --json | jq .jobs.done",
        ),
        "DIR [--json]",
    )
    return parser.takes({"--json": "print everything as JSON"})


def _contents(core: Core) -> dict[str, Any]:
    """Return the page's data, from one snapshot.

    ``batches`` are the newest that are not retired.
    """
    from boinc_gahp.localproject.directory import is_running
    from boinc_gahp.localproject.hosts.engine import engine_notice
    from boinc_gahp.localproject.web import queries

    running = is_running(core.directory)
    with core.db.read() as connection:
        overview = queries.overview(connection, 1)
        return {
            "directory": str(core.directory),
            "running": running,
            "url": core.url,
            "notice": engine_notice(connection, running=running),
            "jobs": overview["totals"],
            "batches": [
                {**batch, "state": batch["state"].name.lower()} for batch in overview["batches"]
            ],
            "jobs_without_batch": overview["without_batch"],
            "number_of_batches": overview["number"],
            "hosts": [
                {
                    **host,
                    "active": bool(host["active"]),
                    "running": [result["name"] for result in host["running"]],
                    "behaviours": [str(behaviour) for behaviour in host["behaviours"]],
                }
                for host in queries.hosts(connection)
            ],
            "programs": queries.programs(connection),
        }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    state = "runs" if found["running"] else "does not run now"
    yield f"The project in {found['directory']} {state}; its address is {found['url']}"
    jobs = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in found["jobs"].items())
    yield f"Jobs: {jobs}"
    if found["notice"]:
        yield found["notice"]
    batches = [{**batch, **batch["jobs"]} for batch in found["batches"][:_SHOWN_BATCHES]]
    without = found["jobs_without_batch"]
    if without["total"]:
        nothing = dict.fromkeys(("id", "state", "app", "user"), "")
        batches.append({**nothing, "name": "(jobs without a batch)", **without})
    yield from _table("batches", batches, "id name state total done failed app user")
    if found["number_of_batches"] > _SHOWN_BATCHES:
        yield f"  and {found['number_of_batches'] - _SHOWN_BATCHES} older ones"
    more = "behaviours credit speed bandwidth memory disk"
    yield from _table("hosts", found["hosts"], f"name active running {more}")
    yield from _table("programs", found["programs"], "name error error_time handled")


def _table(title: str, rows: Sequence[dict[str, Any]], keys: str) -> Iterator[str]:
    """Yield a table's lines; on a narrow terminal the columns at the right go first."""
    if not rows:
        return
    yield f"\n{title.capitalize()}:"
    names = keys.split()
    columns = [
        Column(name.replace("_", " "), rank, 16, middle=True) for rank, name in enumerate(names)
    ]
    texts = (tuple(_cell(name, row[name]) for name in names) for row in rows)
    yield from table.lines(columns, texts, sys.stdout, indent="  ")


def _cell(key: str, value: Any) -> str:
    from boinc_gahp.localproject.web import words

    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, dict)):
        return " ".join(map(str, value)) or "-"
    if not value and value != 0:
        return "-"
    written: dict[str, Callable[[Any], str]] = {
        "state": lambda state: BatchState[state.upper()].words,
        "speed": words.speed,
        "bandwidth": lambda rate: f"{size(rate)}/s",
        "memory": size,
        "disk": size,
        "credit": words.credit,
        "error_time": lambda then: words.ago(then) if then else "-",
    }
    return written.get(key, str)(value)
