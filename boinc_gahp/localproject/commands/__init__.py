"""``boinc_gahp local-project``: a BOINC project on this machine, for trying out.

Each action is a function ``NAME(arguments, config)`` in a module of this package, with its parser
beside it. It prints its results and raises errors.
"""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.errors import LocalProjectTrouble, WorkError, with_advice
from boinc_gahp.terminal.parsing import Group, Parser, not_empty

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from boinc_gahp.localproject.commands.running import Page
    from boinc_gahp.localproject.core import Core

#: Each action: its module and function, and its purpose.
ACTIONS = {
    "init": ("running", "init", "create a project in a new or empty directory"),
    "run": ("running", "run", "run the project until Ctrl-C; create it if needed"),
    "status": ("running", "status", "show what the project contains and does"),
    "add-app": ("apps", "add_app", "add your own app, or another version of an app"),
    "add-user": (
        "participants",
        "add_user",
        "add a user with rights, and write settings for the user",
    ),
    "stage-file": ("working", "stage_file", "copy input files to the project's download directory"),
    "create-work": (
        "working",
        "create_work",
        "create jobs on the server, like BOINC's create_work",
    ),
    "behave": ("participants", "behave", "make a host misbehave, or the hosts that run a job"),
    "set-host": ("participants", "set_host", "change a host's speed, memory, disk, bandwidth"),
}


def run(arguments: list[str], config: str | None, page: Page | None = None) -> int:
    """Run the action named by the first argument; return the exit status.

    Args:
        arguments: the action's name, and its arguments.
        config: not used.
        page: shows a project that runs.
    """
    name = run_parser().chosen(arguments)
    module, function, _ = ACTIONS[name]
    act = getattr(import_module(f"boinc_gahp.localproject.commands.{module}"), function)
    with explained():
        more = {"page": page} if name == "run" else {}
        status: int = act(arguments[1:], config, **more)
    return status


def run_parser(_config: str | None = None) -> Group:
    """Return the parser of the action's name."""
    return Group(
        "local-project",
        "Runs a complete BOINC project with volunteers on this machine, at 127.0.0.1.",
        ACTIONS,
        package=__name__,
        examples=(
            "boinc_gahp local-project init ~/project",
            "boinc_gahp local-project run ~/project",
        ),
    )


# What the actions share: reading arguments, and reporting errors.


def action_parser(
    action: str,
    description: str,
    examples: Iterable[str],
    usage: str,
    *,
    kind: type[Parser] = Parser,
) -> Parser:
    """Return the parser of an action's arguments; the first is the project's directory."""
    parser = kind(f"local-project {action}", description, examples=examples, usage=usage)
    parser.takes({"DIR": "the project's directory"}, dest="directory", type=directory)
    return parser


def directory(text: str) -> Path:
    """Read a directory's path."""
    return Path(not_empty(text)).expanduser().absolute()


def number(text: str) -> float:
    """Read a number of at least 0; exponents are accepted, 1e9."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} was given; a number such as 1e9 is expected")
    return value


@contextmanager
def opened(directory: Path) -> Iterator[Core]:
    """Open a project while another process may run it."""
    from boinc_gahp.localproject.directory import open_core

    core = open_core(directory)
    try:
        yield core
    finally:
        core.db.close()


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors of the local project and of the operating system into errors of one line."""
    try:
        yield
    except WorkError as error:
        raise LocalProjectTrouble(error.advice) from error
    except sqlite3.Error as error:
        raise LocalProjectTrouble(
            f"the project's database: nothing was changed: {with_advice(error)}"
        ) from error
    except UnicodeError as error:
        raise LocalProjectTrouble(f"a text is not UTF-8: {error}; nothing was changed") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise LocalProjectTrouble(
            f"{error.filename}: {error.strerror}"
            if error.filename
            else error.strerror or str(error)
        ) from error


@contextmanager
def refused() -> Iterator[None]:
    """Turn the ValueError with which the project refuses a value into one line."""
    try:
        yield
    except UnicodeError:
        raise
    except ValueError as error:
        raise LocalProjectTrouble(str(error)) from error
