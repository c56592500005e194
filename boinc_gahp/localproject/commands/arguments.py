"""What the actions share: reading arguments, and reporting errors."""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject.errors import LocalProjectTrouble, with_advice
from boinc_gahp.terminal.parsing import Parser, not_empty

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from boinc_gahp.localproject.core import Core


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
    except (SystemExit, KeyboardInterrupt, BrokenPipeError):
        # These are no errors, so what tells them is not imported.
        raise
    except _told() as error:
        raise LocalProjectTrouble(str(error)) from error
    except sqlite3.Error as error:
        raise LocalProjectTrouble(
            f"the project's database: nothing was changed: {with_advice(error)}"
        ) from error
    except UnicodeError as error:
        raise LocalProjectTrouble(f"a text is not UTF-8: {error}; nothing was changed") from error
    except OSError as error:
        raise LocalProjectTrouble(
            f"{error.filename}: {error.strerror}"
            if error.filename
            else error.strerror or str(error)
        ) from error


def _told() -> tuple[type[Exception], ...]:
    """Return the errors whose own text is told; they are imported when there is an error."""
    from boinc_gahp.localproject.backend.new_job import WorkError
    from boinc_gahp.localproject.backend.plugins import PluginError

    return PluginError, WorkError


@contextmanager
def refused() -> Iterator[None]:
    """Turn the ValueError with which the project refuses a value into one line."""
    try:
        yield
    except UnicodeError:
        raise
    except ValueError as error:
        raise LocalProjectTrouble(str(error)) from error
