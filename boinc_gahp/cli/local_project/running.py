"""``local-project init`` and ``run``."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.cli.local_project.arguments import action_parser, host_name, number, whole_number
from boinc_gahp.cli.parsing import not_empty

if TYPE_CHECKING:
    from boinc_gahp.cli.parsing import Parser

_MOST_HOSTS = 100


def init(arguments: list[str], _config: str | None) -> int:
    """Make a project."""
    directory = init_parser().read(arguments).directory
    from boinc_gahp.localproject import init_project

    settings = init_project(directory)
    print(f"A project is in {directory}. Run it, and talk to it from another terminal:")
    print(f"  boinc_gahp local-project run {shlex.quote(str(directory))}")
    print(f"  boinc_gahp --config {shlex.quote(str(settings))}")
    return 0


def init_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``init``."""
    return action_parser(
        "init",
        "Makes a project in a new or empty directory: its database, the supplied apps with their "
        "templates, an account to submit jobs with, and settings that lead to it.",
        ("boinc_gahp local-project init ~/project",),
        "DIR",
    )


def run(arguments: list[str], _config: str | None) -> int:
    """Run a project until it is interrupted."""
    options = run_parser().read(arguments)
    from boinc_gahp.localproject import PhpLimits, Quirks, run_project

    limits = PhpLimits.none() if options.no_php_limits else PhpLimits()
    return run_project(
        options.directory,
        options.port,
        options.hosts,
        quirks=Quirks.as_is(limits) if options.as_is else Quirks(limits),
        delete_delay=options.delete_delay,
        listen=options.listen,
        remote_page=options.page_for_everyone,
        names=options.name,
        # Into a log such a link does not belong.
        sign_in=sys.stdout.isatty(),
        # Whoever waits for the line that says where it is may do so through a pipe.
        announce=partial(print, flush=True),
    )


def run_parser(_config: str | None = None) -> Parser:
    """Return the parser of the arguments of ``run``."""
    parser = action_parser(
        "run",
        "Runs a project: its web RPCs and its page, the back-end programs, and volunteers that run "
        "the jobs as processes on this machine. It ends with Ctrl-C, or any other way: nothing is "
        "lost, and the next run goes on. The other actions work while it runs.",
        (
            "boinc_gahp local-project run ~/project",
            "boinc_gahp local-project run ~/project --hosts 10 --port 8080",
            "boinc_gahp local-project run ~/project --as-is",
        ),
        "DIR [OPTION]...",
    )
    parser.add_argument(
        "--port",
        type=partial(whole_number, 0, 65535),
        default=0,
        metavar="N",
        help="where it listens (default: where it last did, or any free port)",
    )
    parser.add_argument(
        "--hosts",
        type=partial(whole_number, 0, _MOST_HOSTS),
        default=4,
        metavar="N",
        help="number of volunteers (default: 4)",
    )
    parser.add_argument(
        "--as-is",
        action="store_true",
        help="misbehave as a real server does: PHP warnings in replies, unclosed elements, batch "
        "names taken twice, half-made batches",
    )
    parser.add_argument(
        "--no-php-limits",
        action="store_true",
        help="take more than 20 files a request, files of more than 2 MiB, requests of more than "
        "8 MiB, as a server does whose admin has raised PHP's limits",
    )
    parser.add_argument(
        "--delete-delay",
        type=number,
        default=0,
        metavar="SECONDS",
        help="how long the files of a job stay that its templates do not protect by <no_delete/> "
        "(default: until it is assimilated)",
    )
    parser.add_argument(
        "--listen",
        type=not_empty,
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address of this machine on which it listens; 0.0.0.0 for all (default: "
        "127.0.0.1). Passwords and data travel unencrypted",
    )
    parser.add_argument(
        "--page-for-everyone",
        action="store_true",
        help="show the page to browsers on other machines, too",
    )
    parser.add_argument(
        "--name",
        type=host_name,
        action="append",
        default=[],
        metavar="NAME",
        help="another name under which it is asked for, such as an alias of this machine, or a "
        "proxy's; can be given several times. It answers to localhost, to addresses, to the "
        "machine's own name where others can reach it, and to no other: a web page elsewhere could "
        "else read it through a visitor's browser",
    )
    return parser
