"""Result Lines: what a request came to, as one line without its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.gahp.words import NULL, encode, escape, join, split
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable


#: The longest error, in characters; the names that a user chose can make it longer.
LONGEST = 4000
#: So much of a longer one's end stays; the name in ``no batch named NAME`` has at most 255.
_END_KEPT = 1000


def fitting(message: str) -> str:
    """Return an error's text, cut in the middle where it is too long for anybody to read."""
    if len(message) <= LONGEST:
        return message
    return f"{message[: LONGEST - _END_KEPT - 5]} ... {message[-_END_KEPT:]}"


@dataclass(frozen=True, slots=True)
class ResultForm:
    """What the Result Lines of a command look like.

    A gridmanager that meets another number of words than it expects aborts, is started again, and
    may submit its jobs again (``gridmanager-batch.rst``, "Result lines").

    Attributes:
        good: the words between id and values in a success.
        bad: those between id and message in an error.
        rest: those after the message.
        values: how many values a success has; None: as many as there are.
    """

    good: tuple[str, ...] = (NULL,)
    bad: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    values: int | None = None

    def success(self, request_id: str, values: Iterable[str] = ()) -> bytes:
        """Return the line of a success; raises ValueError for a wrong number of values."""
        given = list(values)
        if self.values is not None and len(given) != self.values:
            raise ValueError(f"a result has {len(given)} values instead of {self.values}")
        return join([request_id, *self.good, *given])

    def error(self, request_id: str, message: str, last: str = "") -> bytes:
        """Return the line of an error; the message is one argument, not empty and not NULL.

        Either would be read as success (``gahp.rst``, "BOINC_* commands"). It is printable, on one
        line: it becomes a HoldReason, which HTCondor writes into logs made of lines.

        Args:
            request_id: as it was given.
            message: may hold words of a project.
            last: what follows the message as it is: words of the request itself.
        """
        message = visible(" ".join(message.splitlines())) + last
        if message.strip() in ("", NULL):
            message = f"an error without words ({message.strip() or 'empty'})"
        return encode(" ".join([request_id, *map(escape, (*self.bad, message, *self.rest))]))

    def read(self, line: bytes) -> tuple[str | None, list[str]]:
        """Return the error in a Result Line of this form, or None; and a success's values."""
        words = split(line)[1:]
        if tuple(words[: len(self.good)]) == self.good:
            return None, words[len(self.good) :]
        return words[len(self.bad)], []


#: Of the BOINC_* commands (``gahp.rst``, "BOINC_* commands"): ``id NULL value...`` or
#: ``id message``.
BOINC = ResultForm()


def blah(*fillers: str) -> ResultForm:
    """Return the form of a BLAH_* command (``gridmanager-batch.rst``, "Result lines").

    ``id 0 NULL value...`` or ``id 1 message filler...``: as many fillers as there are values.
    """
    return ResultForm(("0", NULL), ("1",), fillers, len(fillers))


#: A status ad that says nothing. There is always one: HTCondor silently ignores a status that comes
#: with none, even that of a job that is completed (``gridmanager-batch.rst``, "Life of a job").
NO_AD = "[ ]"


def seconds(value: float) -> str:
    """Return a time as the gridmanager reads it: decimal, without an exponent."""
    if not 0 <= value < 1e15:  # also what is no number: it reads the word with atof
        return "0"
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text or "0"
