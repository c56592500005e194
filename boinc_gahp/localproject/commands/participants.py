"""``local-project add-user``, ``behave`` and ``set-host``."""

from __future__ import annotations

import argparse
import getpass
import re
import shlex
import sys
import textwrap
from typing import TYPE_CHECKING

from boinc_gahp.localproject.commands import action_parser, number, opened, refused
from boinc_gahp.localproject.errors import LocalProjectTrouble

if TYPE_CHECKING:
    from boinc_gahp.terminal.parsing import Parser


#: The name is also a file name.
_NAME = re.compile(r"[A-Za-z0-9_@+][A-Za-z0-9_@+.\-]{0,99}")
#: As on stock projects.
_SHORTEST_PASSWORD = 6
_NORMAL = "normal"
_CAPACITIES = ("speed", "memory", "disk", "bandwidth", "engine")


def add_user(arguments: list[str], _config: str | None) -> int:
    """Add a user."""
    options = add_user_parser().read(arguments)
    if not _NAME.fullmatch(options.name):
        raise LocalProjectTrouble(
            f"a user cannot be named {options.name!r}: expected letters, digits and any of _ @ + . "
            "-, at most 100 of them, since the settings file has the same name"
        )
    password = "" if options.email is None else _password(options.name)
    with opened(options.directory) as core, refused():
        from boinc_gahp.localproject import accounts
        from boinc_gahp.localproject.accounts import add_settings

        accounts.add_user(
            core.db,
            options.name,
            apps=options.app,
            max_jobs_in_progress=options.max_jobs,
            email=options.email or "",
            password=password,
        )
        path = add_settings(options.directory, core.db.connection(), options.name)
    print(f"User {options.name} is added. To work as {options.name}:")
    print(f"  export BOINC_GAHP_CONFIG={shlex.quote(str(path))}")
    return 0


def _password(name: str) -> str:
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password for {name}: ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    if len(password) < _SHORTEST_PASSWORD:
        raise LocalProjectTrouble(
            f"the password is too short: at least {_SHORTEST_PASSWORD} characters are expected"
        )
    return password


def add_user_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``add-user``."""
    parser = action_parser(
        "add-user",
        "Adds a user, and writes DIR/users/NAME.toml, which only you can read. It "
        "contains the project's address and the user's authenticator. Without --app "
        "the user may submit jobs to all apps.",
        (
            "boinc_gahp local-project add-user ~/project alice",
            "boinc_gahp local-project add-user ~/project bob --app uppercase --max-jobs 100",
        ),
        "DIR NAME [OPTION]...",
    )
    app = {"--app APP ...": "the user may submit only to this app; can be given several times"}
    jobs = {"--max-jobs N": "the user may have at most N unfinished jobs"}
    email = {
        "--email ADDRESS": "the user can log in (boinc_gahp login --email) with this address, and "
        "with a password that is asked for, or is the first line of standard input"
    }
    parser.takes({"NAME": "the user's name"}).takes(app, default=[]).takes(jobs, default=0)
    parser.takes(email)
    return parser


def behave(arguments: list[str], _config: str | None) -> int:
    """Make a host, or all hosts with a job, misbehave."""
    parser = behave_parser()
    options = parser.read(arguments)
    from boinc_gahp.localproject.hosts import hosts

    host, wanted = ("", options.words) if options.job else (options.words[0], options.words[1:])
    if not wanted:
        parser.error(f"the behaviour is missing: {hosts.expected_behaviours()}; or {_NORMAL}")
    with opened(options.directory) as core, refused():
        who = f"Job {options.job}" if options.job else f"Host {host}"
        if _NORMAL in wanted:
            if len(wanted) > 1:
                raise LocalProjectTrouble(f"{_NORMAL!r} cannot be combined with other behaviours")
            hosts.clear_behaviours(core.db, host=host, job=options.job)
            print(f"{who}: {_NORMAL}")
            return 0
        behaviours = [hosts.parse_behaviour(text) for text in wanted]
        hosts.set_behaviours(core.db, behaviours, host=host, job=options.job)
    print(f"{who}: {' '.join(map(str, behaviours))}")
    return 0


def behave_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``behave``."""
    from boinc_gahp.localproject.hosts import hosts

    kinds = {**hosts.behaviour_spellings(), _NORMAL: "as before"}
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
