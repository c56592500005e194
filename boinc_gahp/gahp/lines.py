"""Turns bytes, as they arrive, into complete Request Lines."""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def incomplete(self) -> bool:
        """Whether a line has begun and not ended: it is dropped at end of input."""
        return bool(self._begun) or self._dropping

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
