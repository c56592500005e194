"""Words for people: times, percentages, lines."""

from __future__ import annotations

import math
import time
from datetime import datetime, timezone

from boinc_gahp.text import printable, span


def one_line(text: str) -> str:
    """Return a text with all its spaces, unless something in it is not :func:`printable`."""
    return text if text.isprintable() else printable(text)


def at(moment: float) -> str:
    """Return a time, given in seconds since the epoch, in this machine's time zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return f"{moment:g} s after the epoch"


def moment(seconds: float | None) -> str | None:
    """Return a time, given in seconds since the epoch, in JSON's form (RFC 3339, in UTC).

    None if there is none, which 0 also means.
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

    A project's clock may be ahead of this machine's, so a future moment counts as now.
    """
    return "just now" if present - moment < 5 else f"{span(present - moment)} ago"


def ahead(moment: float, present: float) -> str:
    """Return how far off a future time is, as of ``present``: ``about 2 h more``."""
    return f"about {span(moment - present)} more"


def percent(fraction: float) -> str:
    """Return a percentage; only a whole gives 100%, and only zero gives 0%."""
    if not 0 < fraction < 1:
        return "100%" if fraction >= 1 else "0%"
    return f"{min(99, max(1, math.floor(fraction * 100)))}%"
