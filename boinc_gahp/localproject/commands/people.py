"""``local-project add-user``."""

from __future__ import annotations

import getpass
import re
import shlex
import sys
from typing import TYPE_CHECKING

from boinc_gahp.localproject.commands.arguments import (
    action_parser,
    opened,
    refused,
)
from boinc_gahp.localproject.errors import LocalProjectTrouble

if TYPE_CHECKING:
    from boinc_gahp.terminal.parsing import Parser

#: The name is also a file name.
_NAME = re.compile(r"[A-Za-z0-9_@+][A-Za-z0-9_@+.\-]{0,99}")
#: As on stock projects.
_SHORTEST_PASSWORD = 6


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
        from boinc_gahp.localproject.settings import add_settings

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
    jobs = {"--max-jobs N": "the user may have at most N jobs in progress"}
    email = {
        "--email ADDRESS": "the user can log in (boinc_gahp login --email) with this address, and "
        "with a password that is asked for, or is the first line of standard input"
    }
    parser.takes({"NAME": "the user's name"}).takes(app, default=[]).takes(jobs, default=0)
    parser.takes(email)
    return parser
