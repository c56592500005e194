"""``local-project behave`` and ``set-host``."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from boinc_gahp.localproject.commands.arguments import (
    action_parser,
    number,
    opened,
    refused,
)
from boinc_gahp.localproject.errors import LocalProjectTrouble

if TYPE_CHECKING:
    from boinc_gahp.terminal.parsing import Parser

_NORMAL = "normal"
_CAPACITIES = ("speed", "memory", "disk", "bandwidth", "engine")


def behave(arguments: list[str], _config: str | None) -> int:
    """Make a host, or all hosts with a job, misbehave."""
    parser = behave_parser()
    options = parser.read(arguments)
    from boinc_gahp.localproject.hosts import behaviour

    host, wanted = ("", options.words) if options.job else (options.words[0], options.words[1:])
    if not wanted:
        parser.error(f"the behaviour is missing: {behaviour.expected()}; or {_NORMAL}")
    with opened(options.directory) as core, refused():
        who = f"Job {options.job}" if options.job else f"Host {host}"
        if _NORMAL in wanted:
            if len(wanted) > 1:
                raise LocalProjectTrouble(f"{_NORMAL!r} cannot be combined with other behaviours")
            behaviour.clear(core.db, host=host, job=options.job)
            print(f"{who}: {_NORMAL}")
            return 0
        behaviours = [behaviour.parse_behaviour(text) for text in wanted]
        behaviour.set_behaviours(core.db, behaviours, host=host, job=options.job)
    print(f"{who}: {' '.join(map(str, behaviours))}")
    return 0


def behave_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``behave``."""
    from boinc_gahp.localproject.hosts import behaviour

    kinds = {**behaviour.spellings(), _NORMAL: "as before"}
    width = max(map(len, kinds))
    listed = "\n".join(
        textwrap.fill(f"  {kind:<{width}}  {does}", 80, subsequent_indent=" " * (width + 4))
        for kind, does in kinds.items()
    )
    parser = action_parser(
        "behave",
        "Makes a host misbehave, or every host that runs a given job, so that you can see how the "
        "project reacts. It applies to jobs that are sent out from now on.\n\nbehaviours "
        f"(xN at the end: for N results only):\n{listed}",
        (
            "boinc_gahp local-project behave ~/project volunteer-0 fail=3",
            "boinc_gahp local-project behave ~/project volunteer-1 slow=5 differx2",
            "boinc_gahp local-project behave ~/project --job job7 crash",
            "boinc_gahp local-project behave ~/project volunteer-0 normal",
        ),
        "DIR (HOST | --job NAME) BEHAVIOUR...",
    )
    parser.takes({"BEHAVIOUR ...": "see above"}, dest="words", metavar="[HOST] BEHAVIOUR")
    parser.takes({"--job NAME": "any host that runs this job"}, type=str, default="")
    return parser


def set_host(arguments: list[str], _config: str | None) -> int:
    """Change a host's properties."""
    parser = set_host_parser()
    options = parser.read(arguments)
    from boinc_gahp.localproject.hosts import hosts

    given = {}
    for change in options.changes:
        name, equals, value = change.partition("=")
        if name not in _CAPACITIES or not equals:
            expected = ", ".join(f"{name}=X" for name in _CAPACITIES)
            parser.error(f"{change!r} was given; expected one of {expected}")
        if name == "engine" and value not in {"0", "1"}:
            parser.error(f"{change!r} was given; expected engine=0 or engine=1")
        try:
            given[name] = number(value)
        except argparse.ArgumentTypeError as error:
            parser.error(f"{name}: {error}")
    told = dict(given)
    with opened(options.directory) as core, refused():
        engine = bool(given.pop("engine")) if "engine" in given else None
        hosts.set_host(core.db, options.host, **given, engine=engine)
    print(f"Host {options.host}: {' '.join(f'{name}={x:g}' for name, x in told.items())}")
    return 0


def set_host_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``set-host``."""
    parser = action_parser(
        "set-host",
        "Changes the capacities that a host reports: speed in operations per second, "
        "memory and disk in bytes, bandwidth in bytes per second. The scheduler uses "
        "them, and time limits depend on them. With engine=0 it does not offer the machine's "
        "container engine, so it gets no jobs of container apps; with engine=1 it does again.",
        (
            "boinc_gahp local-project set-host ~/project volunteer-0 speed=5e9 memory=32e9",
            "boinc_gahp local-project set-host ~/project volunteer-1 engine=0",
        ),
        f"DIR HOST {' '.join(f'[{name}=X]' for name in _CAPACITIES)}",
    )
    changes = {"NAME=X ...": "capacity to change, and its new value"}
    parser.takes({"HOST": "a host's name"}).takes(changes, dest="changes")
    return parser
