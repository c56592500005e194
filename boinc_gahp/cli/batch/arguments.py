"""Arguments of ``boinc_gahp batch``: batches, numbers and spans."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest
from boinc_gahp.quantities import SPAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.quantities import Quantity
    from boinc_gahp.terminal.parsing import Parser


def add_batch(parser: Parser, *, several: bool = False, optional: bool = False) -> None:
    """Add the argument BATCH, as ``options.batch``; with ``several``, a list.

    With ``optional``, the list may be empty.
    """
    text = "id or name of a batch (id:5 or name:5 if a name looks like an id)"
    if several:
        parser.add_argument("batch", nargs="*" if optional else "+", metavar="BATCH", help=text)
    else:
        parser.add_argument("batch", metavar="BATCH", help=text)


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


def quantity(kind: Quantity) -> Callable[[str], float]:
    """Return a function that reads an option's value."""

    def read(text: str) -> float:
        try:
            return kind.read(text)
        except BadRequest as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


#: Reads a time span, ``90``, ``30min``, ``12h``, ``7d``, ``2w``; returns seconds.
span = quantity(SPAN)
