"""Tables that fit the terminal, and lose nothing on a pipe.

Widths are counted as terminals do: East Asian wide characters take two columns, combining marks
none (``unicodedata``). The widths of a table's columns are those of its first rows, so that
thousands of rows can be printed as they come.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, TextIO

from boinc_gahp.cli.terminal import has_colours, painted, width_of
from boinc_gahp.cli.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: A cell's text; or that and its colour.
Cell = str | tuple[str, str]

_GAP = "  "
#: So many rows are looked at before the first is printed.
_AHEAD = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: above it.
        rank: where columns have to go because the terminal is narrow, the one of the highest rank
            goes first; 0: it stays.
        minimum: columns (of the terminal) that it may be cut down to; None: it is not cut.
        right: whether it is aligned to the right.
        middle: whether its texts are cut in the middle: names often differ only in their ends.
    """

    title: str
    rank: int = 0
    minimum: int | None = None
    right: bool = False
    middle: bool = False


def lines(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    stream: TextIO,
    *,
    width: int | None = None,
    indent: str = "",
) -> Iterator[str]:
    """Yield a table's lines, the titles first; no lines at all if there are no rows.

    Columns in which every one of the first rows is empty are left out.

    Args:
        columns: its columns.
        rows: a cell a column each; texts are made printable.
        stream: where it will be printed: that decides on colours and letters.
        width: columns to fit into; None: the terminal's, and on a pipe as many as it takes.
        indent: before each line.
    """
    if width is None:
        width = width_of(stream)
    clean = _Cleaner(stream)
    coming = ([clean(cell) for cell in row] for row in rows)
    first = list(islice(coming, _AHEAD))
    if not first:
        return
    natural = [
        max(cells(column.title), *(cells(_text(row[index])) for row in first))
        if any(_text(row[index]) for row in first)
        else 0
        for index, column in enumerate(columns)
    ]
    widths = fitted(columns, natural, None if width is None else width - len(indent))
    shown = [
        (index, column, wide)
        for index, (column, wide) in enumerate(zip(columns, widths, strict=True))
        if wide
    ]
    line = _Line(shown, stream, cut_at=width is not None, more=clean.more)
    yield indent + line([(column.title, "bold") for column in columns])
    for row in chain(first, coming):
        yield (indent + line(row)).rstrip()


def fitted(columns: Sequence[Column], natural: Sequence[int], width: int | None) -> list[int]:
    """Return how wide to make columns; 0 for one that is left out.

    Args:
        columns: all of them.
        natural: how wide each would be.
        width: what there is, for them and the gaps between; None: as much as it takes.
    """
    widths = list(natural)
    if width is None:
        return widths
    least = [
        wide if column.minimum is None else min(wide, column.minimum)
        for column, wide in zip(columns, widths, strict=True)
    ]
    # The least important go until the others fit, if these are cut as far as they may be; the last
    # ones, too, on a terminal that has no room for what has to stay.
    order = sorted(range(len(columns)), key=lambda index: (-columns[index].rank, -index))
    for index in order[:-1]:
        if _taken(least) <= width:
            break
        least[index] = widths[index] = 0
    if _taken(least) > width:
        least[order[-1]] = widths[order[-1]] = max(0, width)
    # What is left over goes to the most important.
    spare = width - _taken(least)
    for index in reversed(order):
        more = min(spare, widths[index] - least[index])
        least[index] += more
        spare -= more
    return least


def cells(text: str) -> int:
    """Return how many columns of a terminal a printable text takes."""
    return len(text) if text.isascii() else sum(map(_wide, text))


def cut(text: str, width: int, *, middle: bool = False, more: str = "…") -> str:
    """Return a text of at most ``width`` columns, with ``more`` where something is left out."""
    if cells(text) <= width:
        return text
    room = width - cells(more)
    if room < 0:
        return _head(text, width)
    if not middle:
        return _head(text, room) + more
    tail = _tail(text, room // 2)
    return _head(text, room - cells(tail)) + more + tail


class _Cleaner:
    """Makes cells printable, in letters that the stream has."""

    def __init__(self, stream: TextIO) -> None:
        encoding = (stream.encoding or "utf-8").lower().replace("-", "").replace("_", "")
        self._encoding = None if encoding == "utf8" else stream.encoding
        self.more = "…" if self._encoding is None else ".."

    def __call__(self, cell: Cell) -> Cell:
        text = printable(_text(cell)) if not _is_bar(cell) else _text(cell)
        if self._encoding is not None and not text.isascii():
            text = text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        return text if isinstance(cell, str) else (text, cell[1])


def _is_bar(cell: Cell) -> bool:
    # printable() would take a bar's empty end away.
    return isinstance(cell, tuple) and cell[0].isprintable()


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _taken(widths: Sequence[int]) -> int:
    some = [wide for wide in widths if wide]
    return sum(some) + len(_GAP) * max(0, len(some) - 1)


class _Line:
    """Makes lines of rows."""

    def __init__(
        self, shown: Sequence[tuple[int, Column, int]], stream: TextIO, *, cut_at: bool, more: str
    ) -> None:
        self._shown = shown
        self._colours = has_colours(stream)
        self._cut_at = cut_at
        self._more = more

    def __call__(self, row: Sequence[Cell]) -> str:
        parts = []
        for index, column, wide in self._shown:
            cell = row[index]
            text = _text(cell)
            taken = cells(text)
            if taken > wide and self._cut_at:
                text = cut(text, wide, middle=column.middle, more=self._more)
                taken = cells(text)
            space = " " * (wide - taken)
            if self._colours and not isinstance(cell, str) and text.strip():
                text = painted(text, cell[1])
            parts.append(space + text if column.right else text + space)
        return _GAP.join(parts).rstrip()


def _head(text: str, width: int) -> str:
    taken = 0
    for place, letter in enumerate(text):
        taken += _wide(letter)
        if taken > width:
            return text[:place]
    return text


def _tail(text: str, width: int) -> str:
    taken = 0
    for place in range(len(text), 0, -1):
        taken += _wide(text[place - 1])
        if taken > width:
            # A mark that would stand alone goes with its letter.
            while place < len(text) and _wide(text[place]) == 0:
                place += 1  # noqa: PLW2901
            return text[place:]
    return text


@lru_cache(maxsize=4096)
def _wide(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me", "Cf"} or "\u1160" <= letter <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1
