"""Values on the command line of ``batch submit``: placeholders, and sizes with units.

The placeholders in ``--args`` and ``--name-jobs`` are ``{index}``, ``{path}``, ``{name}`` and
``{stem}``. ``{{`` and ``}}`` stand for braces; ``{index:4}`` is a number of at least four digits.
"""

from __future__ import annotations

import argparse
import math
import re
from pathlib import PurePath

from boinc_gahp.text import did_you_mean

#: The placeholders that need a file, and the part of its path that each stands for.
_OF_FILE = {"path": "its path", "name": "its name", "stem": "its name without the last extension"}
_NAMES = ("index", *_OF_FILE)
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_INDEX = re.compile(r"index(?::0?([0-9]{1,2}))?")


class WrongPattern(Exception):
    """A pattern has something in braces that is not a placeholder."""


def check(pattern: str, *, with_file: bool) -> None:
    """Raise WrongPattern if ``pattern`` has anything that cannot be filled in."""
    for part in _PART.finditer(pattern):
        if part[0] in {"{{", "}}"}:
            continue
        said = part[1]
        if said is None:
            raise WrongPattern(f"a {part[0]} stands alone: write {part[0] * 2} for a brace")
        if said in _OF_FILE:
            if not with_file:
                raise WrongPattern(f"{{{said}}} is for files of --each, and there is no --each")
        elif not _INDEX.fullmatch(said):
            raise WrongPattern(
                f"{{{said}}} is not a placeholder; there are "
                f"{', '.join(f'{{{name}}}' for name in _NAMES)}, and {{{{ for a brace"
                f"{did_you_mean(said, _NAMES)}"
            )


class Filling:
    """Fills in checked patterns for one job.

    Args:
        index: the job's number, from 0.
        path: its file; None: the patterns do not use it.
    """

    def __init__(self, index: int, path: str | None = None) -> None:
        self._index = index
        self._path = path

    def __call__(self, pattern: str) -> str:
        """Return ``pattern`` with its placeholders filled in."""
        return _PART.sub(self._part, pattern) if "{" in pattern or "}" in pattern else pattern

    def _part(self, part: re.Match[str]) -> str:
        if part[0] in {"{{", "}}"}:
            return part[0][0]
        index = _INDEX.fullmatch(part[1])
        if index:
            return f"{self._index:0{index[1] or 1}d}"
        path = self._path or ""
        return {"path": path, "name": PurePath(path).name, "stem": PurePath(path).stem}[part[1]]


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
