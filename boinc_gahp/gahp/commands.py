"""All commands, and the typed request in a complete Request Line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp import blah_commands, boinc_commands, common_commands, words as gahp_words
from boinc_gahp.gahp.lines import TooLong
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from boinc_gahp.gahp.command import Command, Request

_ALL = (*common_commands.TABLE, *boinc_commands.TABLE, *blah_commands.TABLE)

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
    words = gahp_words.split(line)
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
