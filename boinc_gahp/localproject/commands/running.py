"""``local-project init``, ``run`` and ``status``."""

from __future__ import annotations

import json
import shlex
import sys
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from boinc_gahp.extras import need_extra
from boinc_gahp.localproject.accounts import SUBMITTER_FILE
from boinc_gahp.localproject.commands import action_parser, opened
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal import table, words
from boinc_gahp.terminal.parsing import whole_number
from boinc_gahp.terminal.stopping import until_stopped
from boinc_gahp.terminal.table import Column
from boinc_gahp.text import amount, count, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.project import LocalProject
    from boinc_gahp.terminal.parsing import Parser

    #: Serves the page of a project that runs; gives its address.
    Page = Callable[[LocalProject], AbstractContextManager[str]]

_MOST_HOSTS = 100
_CHECK_EVERY = 1.0
_SHOWN_BATCHES = 20


def init(arguments: list[str], _config: str | None) -> int:
    """Make a project."""
    directory = init_parser().read(arguments).directory
    need_extra("local-project", "a local project", "flask", "waitress")
    from boinc_gahp.localproject import directory as layout

    with layout.lock(directory):
        layout.make(directory)
    print(f"A project is in {directory}. Run it:")
    print(f"  boinc_gahp local-project run {shlex.quote(str(directory))}")
    print("In another terminal, send jobs to it:")
    print(f"  export BOINC_GAHP_CONFIG={shlex.quote(str(directory / SUBMITTER_FILE))}")
    print("  boinc_gahp batch submit uppercase --each '*.txt' --name first")
    print("  boinc_gahp batch wait first")
    print("  boinc_gahp batch fetch first")
    return 0


def init_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``init``."""
    return action_parser(
        "init",
        "Creates a project in a new or empty directory: its database, the supplied "
        "apps with their templates, an account that may submit jobs, and a settings "
        "file for that account.",
        ("boinc_gahp local-project init ~/project",),
        "DIR",
    )


def run(arguments: list[str], _config: str | None, page: Page | None = None) -> int:
    """Run a project until it is interrupted; ``page`` shows it meanwhile."""
    options = run_parser().read(arguments)
    from boinc_gahp.localproject.core import STOCK, Php
    from boinc_gahp.localproject.project import LocalProject

    # A program may wait on a pipe for the line with the address.
    say = partial(print, flush=True)
    with (
        until_stopped() as stop,
        LocalProject(
            options.directory,
            port=options.port,
            hosts=options.hosts,
            php=STOCK if options.stock_php else Php(),
            listen=options.listen,
            names=options.name,
        ) as project,
        nullcontext("") if page is None else page(project) as address,
    ):
        say(
            f"The project answers at {project.url} with {count(options.hosts, 'volunteer')}. "
            f"Settings for the submitter: {options.directory / SUBMITTER_FILE}. "
            "Stop it with Ctrl-C."
        )
        if address:
            say(f"Its web page: {address}")
        if notice := project.notice():
            say(notice)
        while not stop.wait(_CHECK_EVERY):
            project.check()
    return 0


def run_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``run``."""
    parser = action_parser(
        "run",
        "Runs a project: its web RPCs and its web page, the back-end programs, and "
        "volunteers that run the jobs as processes on this machine. Stop it with "
        "Ctrl-C. However it stops, nothing is lost, and the next run continues. The "
        "other actions work while it runs.",
        (
            "boinc_gahp local-project run ~/project",
            "boinc_gahp local-project run ~/project --hosts 10 --port 8080",
            "boinc_gahp local-project run ~/project --stock-php",
        ),
        "DIR [OPTION]...",
    )
    port = "port to listen on (default: the same as last time, or any free port)"
    parser.takes({"--port N": port}, type=partial(whole_number, 0, 65535), default=0)
    hosts = {"--hosts N": "number of volunteers (default: 4)"}
    parser.takes(hosts, type=partial(whole_number, 0, _MOST_HOSTS), default=4)
    php = {
        "--stock-php": "PHP's own settings instead of those recommended to admins: its messages "
        "are in replies, a file has at most 2 MiB and a request 8 MiB"
    }
    listen = {
        "--listen ADDRESS": "address of this machine to listen on; 0.0.0.0 for all (default: "
        "127.0.0.1). Passwords and data are sent unencrypted"
    }
    names = {
        "--name NAME ...": "another host name under which clients reach it, such as an alias of "
        "this machine or the name of a proxy; can be given several times. It answers only requests "
        "to localhost, to an IP address, to the machine's own name if others can reach it, and to "
        "these names. Otherwise a web page elsewhere could read it through a visitor's browser"
    }
    parser.takes(php).takes(listen, default="127.0.0.1").takes(names, default=[])
    return parser


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
    from boinc_gahp.localproject import contents
    from boinc_gahp.localproject.directory import is_running
    from boinc_gahp.localproject.hosts.engine import engine_notice

    running = is_running(core.directory)
    with core.db.read() as connection:
        overview = contents.overview(connection)
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
                for host in contents.hosts(connection)
            ],
            "programs": contents.programs(connection),
        }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    state = "runs" if found["running"] else "does not run now"
    yield f"The project in {found['directory']} {state}; its address is {found['url']}"
    words = {each.name.lower(): each.value for each in JobState}
    jobs = (f"{number} {words.get(name, name)}" for name, number in found["jobs"].items())
    yield f"Jobs: {', '.join(jobs)}"
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
    from boinc_gahp.localproject import contents

    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, dict)):
        return " ".join(map(str, value)) or "-"
    if not value and value != 0:
        return "-"
    written: dict[str, Callable[[Any], str]] = {
        "state": lambda state: BatchState[state.upper()].words,
        "speed": lambda flops: amount(flops, "FLOPS"),
        "bandwidth": lambda rate: f"{size(rate)}/s",
        "memory": size,
        "disk": size,
        "credit": contents.credit,
        "error_time": lambda then: words.ago(then, time.time()) if then else "-",
    }
    return written.get(key, str)(value)
