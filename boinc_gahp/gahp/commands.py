"""All commands, those of all GAHP servers among them, and the request in a complete Request Line.

Each of the common commands (``gahp.rst``, "Common commands") has its request and its row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp import blah_commands, boinc_commands
from boinc_gahp.gahp.command import Command, Request
from boinc_gahp.gahp.grammar import Text
from boinc_gahp.gahp.lines import TooLong, split
from boinc_gahp.text import quoted


class Commands(Request):
    """COMMANDS."""

    command = "COMMANDS"


class Version(Request):
    """VERSION."""

    command = "VERSION"


class Quit(Request):
    """QUIT."""

    command = "QUIT"


class Results(Request):
    """RESULTS."""

    command = "RESULTS"


class AsyncModeOn(Request):
    """ASYNC_MODE_ON."""

    command = "ASYNC_MODE_ON"


class AsyncModeOff(Request):
    """ASYNC_MODE_OFF."""

    command = "ASYNC_MODE_OFF"


@dataclass(frozen=True, slots=True)
class ResponsePrefix(Request):
    """RESPONSE_PREFIX; an empty prefix means none."""

    command = "RESPONSE_PREFIX"
    prefix: str


_COMMON: tuple[Command, ...] = (
    Command(
        AsyncModeOff,
        summary="do not print R when results are ready",
        help="""\
From now on no R is printed; RESULTS shows whether there are results.""",
    ),
    Command(
        AsyncModeOn,
        summary="print R when results are ready",
        help="""\
From now on a line R is printed when a new result can be fetched with RESULTS. It is printed once
until the next RESULTS, and not for results that exist already.
The console does not need this: it prints results as they come.""",
    ),
    Command(
        Commands,
        returns="command...",
        summary="list the commands",
        help="""\
You can also type command names in small letters.""",
    ),
    Command(
        Quit,
        summary="exit at once",
        help="""\
Unfinished requests are dropped; those that reached the project continue there.""",
    ),
    Command(
        ResponsePrefix,
        (Text("prefix", "the prefix, starting with the next line; NULL: none"),),
        summary="set a prefix for all printed lines",
        help="""\
A gridmanager sets it to tell answers from stray output. It also tells boinc_gahp that the requests
come from a gridmanager. Then an error to BOINC_SUBMIT guarantees that none of the jobs exists, and
answers to BOINC_QUERY_BATCHES leave out jobs that were aborted here.""",
    ),
    Command(
        Results,
        returns="n, then n lines",
        summary="print the results so far; a terminal shows them at once",
        help="""\
Prints the number of results, then the results, one per line, in the order in which they came. Each
result is printed once. The console prints results as they come, and keeps none for RESULTS.""",
    ),
    Command(
        Version,
        returns="$GahpVersion: ... $",
        summary="print the version",
        help="""\
It is the text that was printed at the start.""",
    ),
)

_ALL = (*_COMMON, *boinc_commands.TABLE, *blah_commands.TABLE)

#: All commands by name, in alphabetical order.
COMMANDS: dict[str, Command] = {
    command.name: command for command in sorted(_ALL, key=lambda command: command.name)
}

#: Prefixes of names that people may leave out: HELP PING is about BOINC_PING.
PREFIXES = ("", "BOINC_", "BLAH_", "BLAH_JOB_")


def parse_request(line: bytes | TooLong) -> Request:
    """Return the request in ``line`` (without its end).

    Raises:
        BadRequest: unknown command, too few or too many arguments, counts that do not fit, a
            request id that is not a number, a NUL byte. The text says which argument, what it was,
            and what it may be; it never contains an authenticator.
    """
    if isinstance(line, TooLong):
        raise BadRequest(
            f"the line is longer than {line.limit:,} bytes; send fewer jobs at a time, or raise "
            "[limits] line_bytes"
        )
    if b"\0" in line:
        raise BadRequest("the line has a NUL byte; no argument can hold one")
    words = split(line)
    command = COMMANDS.get(words[0].upper())
    if not words[0]:
        raise BadRequest("the line does not begin with a command; COMMANDS lists them")
    if command is None:
        raise BadRequest(f"there is no command {quoted(words[0])}; COMMANDS lists the commands")
    try:
        return command.request(*_read_arguments(command, words))
    except BadRequest as error:
        raise BadRequest(f"{command.name}: {error}. Its form is: {command.syntax}") from None


def _read_arguments(command: Command, words: list[str]) -> list[Any]:
    values = []
    at = 1
    for piece in command.arguments:
        value, at = piece.read(words, at)
        values.append(value)
    # A space at the end of the line looks like an empty argument; nobody means that.
    if any(words[at:]):
        raise BadRequest(f"too many arguments: {len(words) - 1} given, {at - 1} needed")
    return values
