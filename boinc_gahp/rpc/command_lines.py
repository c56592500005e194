"""A job's arguments as the text that a project stores and a volunteer's client splits.

Four readers see the text, and none of them escapes anything for the next: the line that
``create_work`` reads, which ends at a ``"``; SQL, where ``'`` and a backslash are special; the XML
of the workunit, which clients unescape once; and the client's splitter, which knows quotes, but no
escapes inside them (``web-rpcs.rst``, "Command lines" and "What clients make of it").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest
from boinc_gahp.text import character_name, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Nearly all arguments look like this and need no further check.
_HARMLESS = re.compile(r"[A-Za-z0-9_.,:;=+*@#%-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029\ufffe\uffff\ud800-\udfff]")
#: The characters at which the client splits: C's isspace().
_WHITE = re.compile(r"[ \t]")


def command_line(arguments: Iterable[str], *, doubled: bool = False) -> str:
    r"""Return the text to store for these arguments; the program gets each of them unchanged.

    ``&`` and ``<`` are escaped once, because clients unescape once. A ``>`` is not escaped: tests
    showed that it arrives.

    Args:
        arguments: separate words.
        doubled: whether ``'`` and ``\`` may be sent doubled. The project's database turns them back
            into single ones as long as its server code is not fixed; then arguments with spaces are
            put between ``'``.

    Raises:
        BadRequest: an argument would not arrive unchanged.
    """
    line = " ".join(_word(word, doubled=doubled) for word in arguments)
    if line == "0":
        raise BadRequest(
            "the command line is 0, which the project drops: write it differently (00, or with an "
            "option before it)"
        )
    return line


def check_stored(text: str, where: str = "") -> str:
    """Return a text to be stored; refuse one that a client would choke on.

    Raises:
        BadRequest: it contains a ``<``. A client that finds one in a workunit refuses the whole
            reply, including other people's jobs, or loses the arguments.
    """
    if "<" in text:
        raise BadRequest(
            f"{where}command_line {quoted(text)} contains a <; BOINC's client refuses such a "
            "job, and all others in the same reply: make the text with "
            "boinc_gahp.rpc.command_line()"
        )
    return text


def _word(argument: str, *, doubled: bool) -> str:
    if _HARMLESS.fullmatch(argument):
        return argument
    what = f"argument {quoted(argument)}"
    if not argument:
        raise BadRequest(
            f"{what} is empty, and BOINC's client cannot read an empty argument: leave it out, or "
            "pass it in an input file"
        )
    if '"' in argument:
        raise BadRequest(
            f'{what} contains a ", which ends the command line on the project: pass such a value '
            "in an input file"
        )
    control = _CONTROL.search(argument)
    if control:
        raise BadRequest(
            f"{what} contains {character_name(control[0])}, which cannot be sent to the project: "
            "pass such a value in an input file"
        )
    if doubled:
        text = _between_quotes(argument, what)
        return _escaped(text).replace("\\", "\\\\").replace("'", "''")
    for character in "'\\":
        if character in argument:
            raise BadRequest(
                f"{what} contains a {character}, which the project's database changes: pass it "
                "in an input file, or set escape_command_lines for this project"
            )
    if _WHITE.search(argument):
        raise BadRequest(
            f"{what} contains white space: a BOINC job has one command line, which is split at "
            "spaces on the volunteer's computer; pass it in an input file, or set "
            "escape_command_lines for this project"
        )
    return _escaped(argument)


def _between_quotes(argument: str, what: str) -> str:
    """Quote an argument for the client if it needs quotes.

    Some clients skip the character after an opening quote. A text that such a client and a correct
    one would read differently is refused.
    """
    if not _WHITE.search(argument) and not argument.startswith("'"):
        return argument
    if "'" in argument:
        raise BadRequest(
            f"{what} begins with a ', or contains a ' and white space: BOINC's client cannot read "
            "that in a command line; pass it in an input file"
        )
    return f"'{argument}'"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
