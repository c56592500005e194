"""Sizes and amounts of computing on command lines, with units as people write them."""

from __future__ import annotations

import argparse
import math
import re

#: Sizes in bytes, by the unit in lower case: 2GB is 2e9 bytes, 2GiB 2 * 2**30.
_POWERS = "kmgtp"
_SIZES = {
    "": 1,
    "b": 1,
    **{f"{unit}{b}": 1000**n for n, unit in enumerate(_POWERS, 1) for b in ("", "b")},
    **{f"{unit}i{b}": 1024**n for n, unit in enumerate(_POWERS, 1) for b in ("", "b")},
}
_OPERATIONS = {
    "": 1,
    **{
        f"{unit}{word}": 1000**n
        for n, unit in enumerate(["", *_POWERS])
        for word in ("", "flop", "flops", "fpops")
    },
}
_AMOUNT = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)", re.IGNORECASE)


def nbytes(text: str) -> float:
    """Read a size, ``500MB``, ``2GB``, ``1.5GiB``, or a number of bytes."""
    return _read(text, _SIZES, "size: a number of bytes, or one with kB, MB, GB, GiB, as in 2GB")


def operations(text: str) -> float:
    """Read a number of floating-point operations, ``2e12`` or ``2T``."""
    return _read(
        text,
        _OPERATIONS,
        "number of floating-point operations: a number, or one with M, G, T or P, as in 2e12 or 2T",
    )


def _read(text: str, units: dict[str, int], what: str) -> float:
    found = _AMOUNT.fullmatch(text.strip())
    unit = units.get(found[2].casefold()) if found else None
    amount = float(found[1]) * unit if found and unit is not None else 0.0
    if not 0 < amount < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {what}")
    return amount
