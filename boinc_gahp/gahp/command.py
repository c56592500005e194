"""What a command is: its request as a value, its row in the table, and its help.

Dispatch, errors about arguments, the COMMANDS reply, the console's help and ``docs/reference`` are
all made from the rows.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

from boinc_gahp.gahp import results
from boinc_gahp.gahp.grammar import MAX_DIGITS, Counted, Optional, Piece, Several, Text, is_whole

#: Who carries out a request: the threads for submits and fetches, or those for quick requests.
#: HTCondor's jobs have threads of their own: a submit waits for a disk, a cancel for a submit that
#: is being recorded, and a status must not wait for either.
Pool = Literal["work", "control", "accept", "cancel", "status"]


@dataclass(frozen=True, slots=True)
class Request:
    """The base of all requests: the name of their command.

    Text is as :func:`boinc_gahp.gahp.lines.split` returns it. A request without fields of its own
    needs no decorator, which would take longer than all else of its module's import.
    """

    command: ClassVar[str] = ""


@dataclass(frozen=True, slots=True)
class AsyncRequest(Request):
    """A request that is answered twice: with a Return Line, and later with a Result Line.

    Attributes:
        request_id: as it was written.
    """

    request_id: str


#: The first argument of every asynchronous request; the Result Line repeats it as it was written.
REQUEST_ID = Text(
    "id",
    "your number for this request; its result begins with it",
    f"a whole number above 0 of at most {MAX_DIGITS} digits",
    lambda word: is_whole(word) and bool(word.strip("0")),
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        request: its requests, which are made from the values of the arguments.
        arguments: the pieces of its syntax, in order.
        summary: what it does, in a line.
        help: what a user needs to know besides syntax and arguments, in plain text.
        pool: None for a command that is answered at once: the Return Line is the whole answer.
        returns: what follows the request id in the Result Line, or S in the Return Line.
        form: what its Result Lines look like.
    """

    request: type[Request]
    arguments: tuple[Piece, ...] = ()
    _: KW_ONLY
    summary: str
    help: str
    pool: Pool | None = None
    returns: str = ""
    form: results.ResultForm = results.BOINC

    @property
    def name(self) -> str:
        """Its name in capitals; lines may have it in small letters (``gahp.rst``, "Lines")."""
        return self.request.command

    @property
    def syntax(self) -> str:
        """The command and its arguments as ``gahp.rst`` writes them."""
        return " ".join([self.name, *(piece.syntax for piece in self.arguments)])


def describe(piece: Piece, indent: str = "") -> list[str]:
    """Return lines that explain an argument, for help: its name, then its meaning."""
    if isinstance(piece, Counted):
        lines = [f"{indent}{piece.count:<16} number of {piece.help}; for each:"]
        if len(piece.fields) == 1 and piece.fields[0].help:
            lines = [f"{indent}{piece.count:<16} number of {piece.help}, then each"]
        inner: list[Any] = list(piece.fields)
        return lines + [line for field in inner for line in describe(field, indent + "  ")]
    if isinstance(piece, Several):
        return [f"{indent}{piece.field.name:<16} {piece.field.help}; one or more"]
    if isinstance(piece, Optional):
        lines = [f"{indent}[{piece.help}]"]
        return lines + [line for field in piece.fields for line in describe(field, indent + "  ")]
    return [f"{indent}{piece.syntax:<16} {piece.help}"]


def help_text(command: Command) -> str:
    """Return the long help of a command: syntax, arguments, explanation, result.

    Each paragraph is one line, however long.
    """
    lines = [command.syntax, "", f"  {command.summary[0].upper()}{command.summary[1:]}."]
    if command.arguments:
        lines += ["", *(line for piece in command.arguments for line in describe(piece, "  "))]
    paragraphs = re.split(r"\n(?=Example|[A-Z_]+ \d)", command.help)
    lines += ["", *(f"  {' '.join(each.split())}" for each in paragraphs)]
    if command.pool is None:
        lines += ["", f"  Answer: S {command.returns}".rstrip()]
    else:
        lines += ["", f"  Answer: S; then the result: id {command.returns}"]
    return "\n".join(lines)
