"""Result Lines: the result of a request, as one line without its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.gahp.lines import NULL, encode, escape, join
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable


#: The longest error, in characters; names chosen by the user can make it longer.
LONGEST = 4000
#: Characters kept of its end; the name in ``no batch named NAME`` has at most 255.
_END_KEPT = 1000


def fitting(message: str) -> str:
    """Return an error's text, cut in the middle if it is too long for anybody to read."""
    if len(message) <= LONGEST:
        return message
    return f"{message[: LONGEST - _END_KEPT - 5]} ... {message[-_END_KEPT:]}"


@dataclass(frozen=True, slots=True)
class ResultForm:
    """The form of a command's Result Lines.

    If a gridmanager meets another number of words than it expects, it aborts, is started again, and
    may submit its jobs again (``gridmanager-batch.rst``, "Result lines").

    Attributes:
        good: the words between the id and the values in a success.
        bad: the words between the id and the message in an error.
        rest: the words after the message.
        values: the number of values in a success; None: any number.
    """

    good: tuple[str, ...] = (NULL,)
    bad: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    values: int | None = None

    def success(self, request_id: str, values: Iterable[str] = ()) -> bytes:
        """Return the line for a success; raises ValueError for a wrong number of values."""
        given = list(values)
        if self.values is not None and len(given) != self.values:
            raise ValueError(f"a result has {len(given)} values instead of {self.values}")
        return join([request_id, *self.good, *given])

    def error(self, request_id: str, message: str, last: str = "") -> bytes:
        """Return the line for an error; the message is one argument, not empty and not NULL.

        Either would be read as success (``gahp.rst``, "BOINC_* commands"). The message is
        printable, on one line: it becomes a HoldReason, which HTCondor writes into line-based logs.

        Args:
            request_id: as the request had it.
            message: may contain the project's words.
            last: words that follow the message unchanged: the request's own words.
        """
        message = visible(" ".join(message.splitlines())) + last
        if message.strip() in ("", NULL):
            message = f"an error without a message ({message.strip() or 'empty'})"
        return encode(" ".join([request_id, *map(escape, (*self.bad, message, *self.rest))]))


#: The form of the BOINC_* commands (``gahp.rst``, "BOINC_* commands"): ``id NULL value...`` or
#: ``id message``.
BOINC = ResultForm()


def blah(*fillers: str) -> ResultForm:
    """Return the form of a BLAH_* command (``gridmanager-batch.rst``, "Result lines").

    ``id 0 NULL value...`` or ``id 1 message filler...``: with as many fillers as values.
    """
    return ResultForm(("0", NULL), ("1",), fillers, len(fillers))


#: A status ad that says nothing. There must be one: HTCondor silently ignores a status without an
#: ad, even for a completed job (``gridmanager-batch.rst``, "Life of a job").
NO_AD = "[ ]"


def seconds(value: float) -> str:
    """Return a time as the gridmanager reads it: decimal, without an exponent."""
    if not 0 <= value < 1e15:  # also if it is not a number: it reads the word with atof
        return "0"
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text or "0"
