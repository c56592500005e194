"""Words for people: times, parts of a whole; and those of :mod:`boinc_gahp.text`."""

from __future__ import annotations

import math
import time
from datetime import datetime, timezone

from boinc_gahp.text import count, printable, size, span

__all__ = [
    "ago",
    "ahead",
    "at",
    "count",
    "moment",
    "now",
    "one_line",
    "percent",
    "printable",
    "size",
    "span",
]


def one_line(text: str) -> str:
    """Return a text with all its spaces, unless something in it is not :func:`printable`."""
    return text if text.isprintable() else printable(text)


def now() -> float:
    """Return the time, in seconds since the epoch."""
    return time.time()


def at(moment: float) -> str:
    """Return a time, given in seconds since the epoch, in this machine's time zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return f"{moment:g} s after the epoch"


def moment(seconds: float | None) -> str | None:
    """Return a time, given in seconds since the epoch, as JSON has it (RFC 3339, in UTC).

    None for none, which 0 is, too.
    """
    if not seconds:
        return None
    try:
        at = datetime.fromtimestamp(int(seconds), tz=timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(moment: float, present: float) -> str:
    """Return how long ago a time was, as of ``present``: ``3 h ago``, ``just now``.

    A project's clock may be ahead of this machine's, so a moment to come is now, too.
    """
    return "just now" if present - moment < 5 else f"{span(present - moment)} ago"


def ahead(moment: float, present: float) -> str:
    """Return how far off a time to come is, as of ``present``: ``in about 2 h``, ``any moment``."""
    return "any moment" if moment - present < 5 else f"in about {span(moment - present)}"


def percent(fraction: float) -> str:
    """Return a fraction in per cent; 100% is only what is whole, 0% only what has not begun."""
    if not 0 < fraction < 1:
        return "100%" if fraction >= 1 else "0%"
    return f"{min(99, max(1, math.floor(fraction * 100)))}%"
