"""Values on the command line of ``batch submit``: placeholders, and sizes with units.

The placeholders in ``--args`` and ``--name-jobs`` are ``{index}``, ``{path}``, ``{name}`` and
``{stem}``. ``{{`` and ``}}`` stand for braces; ``{index:4}`` is a number of at least four digits.
"""

from __future__ import annotations

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
        given = part[1]
        if given is None:
            raise WrongPattern(f"a {part[0]} stands alone: write {part[0] * 2} for a brace")
        if given in _OF_FILE:
            if not with_file:
                raise WrongPattern(f"{{{given}}} is for files of --each, and there is no --each")
        elif not _INDEX.fullmatch(given):
            raise WrongPattern(
                f"{{{given}}} is not a placeholder; there are "
                f"{', '.join(f'{{{name}}}' for name in _NAMES)}, and {{{{ for a brace"
                f"{did_you_mean(given, _NAMES)}"
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
