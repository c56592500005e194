"""Colours, for terminals only and unless NO_COLOR asks for none (no-color.org)."""

from __future__ import annotations

import os
from typing import TextIO

_CODES = {"green": "32", "yellow": "33", "red": "31", "faint": "2", "bold": "1"}


def has_colours(stream: TextIO) -> bool:
    """Tell whether colours may be written to ``stream``."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """Return ``text`` in a colour, if ``stream`` takes colours."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if has_colours(stream) else text
