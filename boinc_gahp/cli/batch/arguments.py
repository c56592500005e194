"""Arguments of ``boinc_gahp batch``: batches, numbers, spans and times."""

from __future__ import annotations

import argparse
import math
import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.terminal import Parser

_UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
#: Seconds of the longest time span, a hundred years: sums with longer ones are not valid times.
LONGEST = 36525 * 86400.0
_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")


def add_batch(parser: Parser, *, several: bool = False) -> None:
    """Add the argument BATCH, as ``options.batch``; with ``several``, a list of at least one."""
    text = "id or name of a batch (id:5 or name:5 if a name looks like an id)"
    if several:
        argument = parser.add_argument("batch", nargs="+", metavar="BATCH", help=text)
    else:
        argument = parser.add_argument("batch", metavar="BATCH", help=text)
    parser.completes(argument, "batch")


def add_job(parser: Parser) -> None:
    """Add the option ``--job``, as ``options.job``, a list or None."""
    parser.add_argument(
        "--job",
        action="append",
        metavar="JOB",
        help="only the job with this name or id; may be repeated",
    )


def add_common(parser: Parser, config: str | None, *, json: str | None = "print JSON") -> None:
    """Add the options of all actions: ``--project``, ``--config``; with a help text, ``--json``."""
    parser.add_project()
    parser.add_config(config)
    if json is not None:
        parser.add_argument("--json", action="store_true", help=json)


def whole_number(text: str) -> int:
    """Read a count, one or more."""
    if not (text.isascii() and text.isdigit() and int(text[:18]) > 0 and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def span(text: str) -> float:
    """Read a time span, ``90``, ``30min``, ``12h``, ``7d``, ``2w``; return seconds."""
    found = _SPAN.fullmatch(text.strip().casefold())
    unit = _UNITS.get(found[2] or "s") if found else None
    if not found or unit is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time span: a number with s, min, h, d or w, as in 12h or 7d"
        )
    seconds = float(found[1]) * unit
    if seconds > LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than a hundred years")
    return seconds


def moment(text: str) -> float:
    """Read a time, ``2026-12-24`` (its end) or ``2026-12-24T18:00``; return seconds of the epoch.

    It is in this machine's local time, unless it has a zone: ``2026-12-24T18:00Z``, ``…+01:00``.
    ``never`` is infinite.
    """
    iso = text.strip().replace(" ", "T", 1)
    if iso == "never":
        return math.inf
    # Python 3.10 does not read a Z.
    iso = iso[:-1] + "+00:00" if iso[-1:] in {"Z", "z"} else iso
    try:
        read = datetime.fromisoformat(iso)
        if "T" not in iso:
            read = read.replace(hour=23, minute=59, second=59)
        return read.timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time like 2037-12-24 or 2037-12-24T18:00"
        ) from None
