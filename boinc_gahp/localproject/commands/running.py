"""``local-project init`` and ``run``."""

from __future__ import annotations

import shlex
import signal
import threading
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.extras import need_extra
from boinc_gahp.localproject.commands.arguments import (
    action_parser,
)
from boinc_gahp.localproject.settings import SUBMITTER_FILE
from boinc_gahp.terminal.parsing import whole_number

if TYPE_CHECKING:
    from types import FrameType

    from boinc_gahp.terminal.parsing import Parser

_MOST_HOSTS = 100
_CHECK_EVERY = 1.0


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


def run(arguments: list[str], _config: str | None) -> int:
    """Run a project until it is interrupted."""
    options = run_parser().read(arguments)
    from boinc_gahp.localproject.php import STOCK, Php
    from boinc_gahp.localproject.project import LocalProject

    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    # A program may wait on a pipe for the line with the address.
    say = partial(print, flush=True)
    try:
        with LocalProject(
            options.directory,
            port=options.port,
            hosts=options.hosts,
            php=STOCK if options.stock_php else Php(),
            listen=options.listen,
            names=options.name,
        ) as project:
            say(
                f"The project answers at {project.url} ({options.hosts} volunteers). Settings for "
                f"the submitter: {options.directory / SUBMITTER_FILE}. Stop it with Ctrl-C."
            )
            say(f"Its web page: {project.page}")
            if notice := project.notice():
                say(notice)
            while not stop.wait(_CHECK_EVERY):
                project.check()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
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
