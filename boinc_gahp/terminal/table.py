"""Tables that fit the terminal, and lose nothing on a pipe.

rich knows the widths of letters. Its own tables are unsuitable: they are laid out after the last
row (with 100,000 jobs the first line came after half a minute, and took 450 MB), leave no column
out if the terminal is narrow, and cut names only at their ends. Here the first rows decide the
widths of columns, so that thousands of rows are printed as they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, TextIO

from boinc_gahp.terminal.output import can_show, has_colours, painted, width_of
from boinc_gahp.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: A cell's text; or text and colour.
Cell = str | tuple[str, str]

_GAP = "  "
#: Rows to look at before the first is printed.
_AHEAD = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: the text above it.
        rank: if the terminal is narrow, the column with the highest rank is dropped first; 0: it
            stays.
        minimum: the least width, in terminal columns, that it may be cut to; None: it is not cut.
        right: whether it is aligned to the right.
        middle: whether its texts are cut in the middle: names often differ only in their ends.
    """

    title: str = ""
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
    """Yield a table's lines, the titles first if there are any; no lines at all without rows.

    Columns without any text are left out: on a terminal, if the first rows have none.

    Args:
        columns: its columns.
        rows: one cell per column; texts are made printable.
        stream: where it will be printed: this decides colours and letters.
        width: the width to fit into; None: the terminal's, and unlimited on a pipe.
        indent: text before each line.
    """
    if width is None:
        width = width_of(stream)
    encoding = stream.encoding or "utf-8"
    more = "…" if can_show("…", encoding) else ".."
    colours = has_colours(stream)
    coming = ([_clean(cell, encoding) for cell in row] for row in rows)
    first = list(islice(coming, _AHEAD))
    if not first:
        return
    # On a pipe, no text may be lost, even if it comes late in a column.
    keep = width is None and len(first) == _AHEAD
    natural = []
    for column, texts in zip(columns, zip(*first, strict=True), strict=True):
        # Some texts have no width of their own: a lone skin tone, say.
        has_text = keep or any(text for text, _ in texts)
        widest = max(cells(text) for text in (column.title, *(text for text, _ in texts)))
        natural.append(max(widest, 1) if has_text else 0)
    widths = fitted(columns, natural, None if width is None else width - len(indent))

    def line(row: Sequence[tuple[str, str]]) -> str:
        parts = []
        for column, wide, (text, colour) in zip(columns, widths, row, strict=True):
            if not wide:
                continue
            shown = text if width is None else cut(text, wide, middle=column.middle, more=more)
            space = " " * (wide - cells(shown))
            if colour and colours and shown.strip():
                shown = painted(shown, colour)
            parts.append(space + shown if column.right else shown + space)
        return (indent + _GAP.join(parts)).rstrip()

    titles = [(column.title, "bold") for column in columns]
    head = [titles] if any(title for title, _ in titles) else []
    yield from map(line, chain(head, first, coming))


def fitted(columns: Sequence[Column], natural: Sequence[int], width: int | None) -> list[int]:
    """Return the widths of columns; 0 for one that is left out.

    Args:
        columns: all of them.
        natural: the full width of each.
        width: the room for them and the gaps between; None: unlimited.
    """
    widths = list(natural)
    if width is None:
        return widths
    least = [
        wide if column.minimum is None else min(wide, column.minimum)
        for column, wide in zip(columns, widths, strict=True)
    ]
    # The least important go until the others fit, if these are cut as far as they may be; the last
    # columns go, too, on a terminal that has no room for those that have to stay.
    order = sorted(range(len(columns)), key=lambda index: (-columns[index].rank, -index))
    for index in order[:-1]:
        if _taken(least) <= width:
            break
        least[index] = widths[index] = 0
    if _taken(least) > width:
        least[order[-1]] = widths[order[-1]] = max(0, width)
    # The remaining room goes to the most important.
    spare = width - _taken(least)
    for index in reversed(order):
        more = min(spare, widths[index] - least[index])
        least[index] += more
        spare -= more
    return least


def cells(text: str) -> int:
    """Return the number of terminal columns of a printable text."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int, *, middle: bool = False, more: str = "…") -> str:
    """Return a text of at most ``width`` columns, with ``more`` where something is left out."""
    taken = cells(text)
    if taken <= width:
        return text
    from rich.cells import set_cell_size

    room = max(0, width - cells(more))
    end = text[len(set_cell_size(text, taken - room // 2)) :] if middle else ""
    # A wide letter that does not fit leaves a space.
    return set_cell_size(text, room - cells(end)).rstrip() + more[:width] + end


def _clean(cell: Cell, encoding: str) -> tuple[str, str]:
    """Return a cell's text, printable and in letters that the stream has, and its colour."""
    text, colour = (cell, "") if isinstance(cell, str) else cell
    # printable() would remove the empty end of a bar.
    if not colour or not text.isprintable():
        text = printable(text)
    if not text.isascii():
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    return text, colour


def _taken(widths: Sequence[int]) -> int:
    some = [wide for wide in widths if wide]
    return sum(some) + len(_GAP) * max(0, len(some) - 1)
