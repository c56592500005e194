r"""Request Lines: bytes, as they arrive, become lines; lines are split into words, and joined.

Text is UTF-8 with ``surrogateescape``, so that any bytes come back unchanged (``gahp.rst``,
"Lines").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

_CR = 0x0D

#: Default for the longest Request Line: eight times the largest ever seen.
MAX_LINE = 256_000_000


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a Request Line that was dropped because it was longer than ``limit`` bytes."""

    limit: int


class LineSplitter:
    r"""Cuts a stream of bytes at every unescaped LF.

    An unescaped CR right before that LF is dropped; CR and LF after a backslash belong to an
    argument (``gahp.rst``, "Lines"). The time is linear in the number of bytes, in whatever pieces
    they arrive.

    Args:
        max_line: a longer line (without its end) becomes one :class:`TooLong` when its end arrives;
            its bytes are not kept.
    """

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self.max_line = max_line
        self._begun = bytearray()
        self._escaping = False  # the last byte was a backslash that makes the next byte literal
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Take the next bytes; return the lines they complete, without line ends."""
        lines: list[bytes | TooLong] = []
        begin = after_lf = 0
        while (lf := data.find(b"\n", after_lf)) >= 0:
            if not self._literal(data, after_lf, lf):
                self._keep(data[begin:lf])
                lines.append(self._line())
                begin = lf + 1
            after_lf = lf + 1
            self._escaping = False
        self._escaping = self._literal(data, after_lf, len(data))
        self._keep(data[begin:])
        return lines

    def _literal(self, data: bytes, begin: int, end: int) -> bool:
        """Whether the byte at ``end`` is escaped by a backslash; no LF is between begin and end."""
        backslashes = _backslashes(data[begin:end])
        if backslashes == end - begin:
            backslashes += self._escaping
        return backslashes % 2 == 1

    def _keep(self, piece: bytes) -> None:
        if self._dropping:
            return
        # Two more than the limit: one for the CR of the line's end, one to notice excess.
        if len(self._begun) + len(piece) > self.max_line + 1:
            self._begun = bytearray()
            self._dropping = True
        else:
            self._begun += piece

    def _line(self) -> bytes | TooLong:
        line, self._begun = self._begun, bytearray()
        if self._dropping:
            self._dropping = False
            return TooLong(self.max_line)
        if line and line[-1] == _CR and _backslashes(line[:-1]) % 2 == 0:
            del line[-1]
        return TooLong(self.max_line) if len(line) > self.max_line else bytes(line)


def _backslashes(piece: bytes | bytearray) -> int:
    """Return with how many backslashes ``piece`` ends; if it is odd, the next byte is escaped."""
    return len(piece) - len(piece.rstrip(b"\\"))


# -- words

#: The literal argument that stands for "none".
NULL = "NULL"

_SPECIAL = re.compile(r"[ \\\r\n]")
_SPECIAL_BUT_SPACE = re.compile(r"[\\\r\n]")

# Stand for a literal backslash, a literal space and a border while a line is split. Lone high
# surrogates never come out of a decoder with surrogateescape, which uses U+DC80 to U+DCFF; but they
# double the memory for a line: if a line has no control characters, these are used.
_STAND_INS = (("\x01", "\x02", "\x03"), ("\ud800", "\ud801", "\ud802"))


def decode(line: bytes) -> str:
    """Return the text of ``line``."""
    return line.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Return the bytes that ``text`` was decoded from."""
    return text.encode("utf-8", "surrogateescape")


def escape(text: str) -> str:
    """Return ``text`` as one argument of a line: backslash before space, backslash, CR and LF."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def join(arguments: Iterable[str]) -> bytes:
    """Return a line with these arguments, without its end."""
    words = list(arguments)
    text = " ".join(words)
    # Among the statuses of 100,000 jobs, there is hardly ever anything to escape.
    if text.count(" ") < len(words) and not _SPECIAL_BUT_SPACE.search(text):
        return encode(text)
    return encode(" ".join(map(escape, words)))


def split(line: bytes) -> list[str]:
    r"""Return the arguments of a line, unescaped.

    Every unescaped space separates two arguments, so two spaces in a row have an empty argument
    between them. An empty line has one empty argument.

    The function replaces texts in the whole line: a line with 100,000 jobs has 30 MB, and a loop
    over its characters would take longer than the gridmanager waits.

    Raises:
        BadRequest: the line ends in a backslash that escapes nothing.
    """
    text = decode(line)
    if "\\" not in text:
        return text.split(" ")
    plain = not any(stand_in in text for stand_in in _STAND_INS[0])
    backslash, space, border = _STAND_INS[0 if plain else 1]
    text = text.replace("\\\\", backslash)  # runs of backslashes pair up from the left
    if text.endswith("\\"):
        raise BadRequest("the line ends in a backslash that has nothing to escape")
    text = text.replace("\\ ", space).replace("\\", "").replace(" ", border)
    return text.replace(space, " ").replace(backslash, "\\").split(border)
