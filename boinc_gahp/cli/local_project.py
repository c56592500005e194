"""``boinc_gahp local-project``: a BOINC project on this machine, for trying out."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from boinc_gahp.cli.extra import need_local_project
from boinc_gahp.errors import GahpError

_MOST_HOSTS = 100


class LocalProjectTrouble(GahpError):
    """The local project cannot be made or run; the text says why."""


def run(arguments: list[str], _config: str | None) -> int:
    """Make or run a local project; return the exit status."""
    options = _parser().parse_args(arguments)
    need_local_project()
    from boinc_gahp import localproject as room

    try:
        if options.action == "init":
            _init(options.directory)
            return 0
        # Whoever waits for the line that says where it is may do so through a pipe.
        announce = partial(print, flush=True)
        return room.run_project(options.directory, options.port, options.hosts, announce=announce)
    except (room.ProjectDirectoryError, room.DatabaseError, room.ProjectFailed) as error:
        raise LocalProjectTrouble(str(error)) from error
    except OSError as error:
        raise LocalProjectTrouble(f"{error.filename or options.directory}: {error}") from error


def _init(directory: Path) -> None:
    from boinc_gahp.localproject import init_project

    settings = init_project(directory)
    print(f"A project is in {directory}. Run it, and talk to it from another terminal:")
    print(f"  boinc_gahp local-project run {directory}")
    print(f"  boinc_gahp --config {settings}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="boinc_gahp local-project",
        description="A whole BOINC project on this machine, with volunteers, on 127.0.0.1.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    init = actions.add_parser("init", help="make a project in a new or empty directory")
    start = actions.add_parser("run", help="run it until Ctrl-C; makes it if it is new")
    for each in (init, start):
        each.add_argument("directory", type=_directory, metavar="DIR")
    start.add_argument(
        "--port", type=partial(_number, 0, 65535), default=0, help="default: the last, or any"
    )
    start.add_argument(
        "--hosts",
        type=partial(_number, 0, _MOST_HOSTS),
        default=4,
        help="number of volunteers (default: 4)",
    )
    return parser


def _directory(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _number(least: int, most: int, text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(
            f"{text!r} was given; a number from {least} to {most} is expected"
        )
    return number
