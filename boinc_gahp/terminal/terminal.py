"""What a stream can show: colours (unless NO_COLOR asks for none, no-color.org), widths, lines."""

from __future__ import annotations

import os
from functools import cache
from typing import TextIO

_CODES = {"green": "32", "yellow": "33", "red": "31", "cyan": "36", "faint": "2", "bold": "1"}

#: The assumed width if the terminal does not report one.
_WIDTH = 80


def has_colours(stream: TextIO) -> bool:
    """Tell whether ``stream`` takes colours."""
    return not os.environ.get("NO_COLOR") and is_live(stream)


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """Return ``text`` in a colour, if ``stream`` takes colours."""
    return painted(text, colour) if has_colours(stream) else text


def painted(text: str, colour: str) -> str:
    """Return ``text`` in a colour."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def is_live(stream: TextIO) -> bool:
    """Tell whether ``stream`` is a terminal on which the cursor can be moved."""
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def width_of(stream: TextIO) -> int | None:
    """Return the width in columns of the terminal ``stream``; None if it is not a terminal."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH
    except (OSError, ValueError):
        return _WIDTH


def bar(fraction: float, width: int, stream: TextIO) -> str:
    """Return a bar of ``width`` columns, without colour, in letters that ``stream`` has.

    Only a whole is shown as a full bar, and only zero as an empty one.
    """
    full, half, empty = _BARS[can_show("━╸", stream.encoding or "ascii")]
    halves = round(min(1.0, max(0.0, fraction)) * 2 * width)
    if 0 < fraction < 1:
        halves = min(2 * width - 1, max(1, halves))
    shown = full * (halves // 2) + half * (halves % 2)
    return shown + empty * (width - len(shown))


_BARS = {True: ("━", "╸", " "), False: ("#", "-", " ")}


@cache
def can_show(letters: str, encoding: str) -> bool:
    """Tell whether an encoding has these letters."""
    try:
        letters.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
