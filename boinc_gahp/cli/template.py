"""``boinc_gahp template check``: reports what is wrong with job templates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest
from boinc_gahp.templates.rules import check_template
from boinc_gahp.templates.types import Problem, Severity
from boinc_gahp.terminal.output import coloured
from boinc_gahp.terminal.parsing import Group, Parser
from boinc_gahp.text import count

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}
#: Bytes to read from a file; a template that goes into a job has at most 64 KB.
_MOST = 4 << 20

_DESCRIPTION = """\
Checks job templates: an input template, an output template, or both in one file. It finds what
breaks a submit or loses an output. Each error or warning is a line of the form "file:line: error:
message [code]". The message says what was found, what to write, and why.
"""
_EXAMPLES = (
    "boinc_gahp template check templates/uppercase_in templates/uppercase_out",
    "boinc_gahp template check --strict - < uppercase_in",
)
_STATUSES = {
    0: "no errors",
    1: "errors; with --strict also warnings",
    2: "a file cannot be read, or the command line is wrong",
}


def run_parser() -> Group:
    """Return the parser of the action's name."""
    return Group(
        "template",
        "Works with job templates.",
        {"check": ("template", "check", "check templates for errors")},
        package="boinc_gahp.cli",
        examples=_EXAMPLES[:1],
    )


def check(options: Namespace) -> int:
    """Check templates; return the exit status."""
    errors = warnings = unreadable = 0
    for name in options.files:
        try:
            problems = check_template(_text(name))
        except BadRequest as error:
            sys.stdout.flush()
            print(f"boinc_gahp: {error}", file=sys.stderr)
            unreadable += 1
            continue
        _show("<stdin>" if name == "-" else name, problems)
        errors += sum(problem.severity is Severity.ERROR for problem in problems)
        warnings += sum(problem.severity is Severity.WARNING for problem in problems)
    checked = len(options.files) - unreadable
    print(f"{count(checked, 'file')}: {count(errors, 'error')}, {count(warnings, 'warning')}")
    if unreadable:
        return 2
    return 1 if errors or (options.strict and warnings) else 0


def check_parser() -> Parser:
    """Return the parser of the arguments of ``check``."""
    parser = Parser("template check", _DESCRIPTION, examples=_EXAMPLES, statuses=_STATUSES)
    parser.takes({"FILE ...": "a template file; - is standard input"}, dest="files")
    return parser.takes({"--strict": "treat warnings as errors"})


def _text(name: str) -> str:
    """Return the content of a file; bytes that are not UTF-8 are read as some character.

    Raises:
        BadRequest: there is no such file, or it cannot be a template.
    """
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_MOST)
        else:
            with Path(name).open("rb") as file:
                data = file.read(_MOST)
    except IsADirectoryError as error:
        raise BadRequest(
            f"{name} is a directory: expected files; name those in it, for example {name}/*"
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadRequest(f"{name!r} cannot be read: {reason}") from error
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _show(name: str, problems: Iterable[Problem]) -> None:
    for problem in problems:
        word = coloured(problem.severity.value, _COLOURS[problem.severity], sys.stdout)
        print(f"{name}:{problem.line}: {word}: {problem.text} [{problem.code}]")
