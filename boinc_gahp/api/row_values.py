"""Checks the cells of a row, and makes the errors that say which one is wrong."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.api.files import read_file, relative_to
from boinc_gahp.api.types import InlineFile
from boinc_gahp.errors import BadRequest, GahpError
from boinc_gahp.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.api.types import File

#: The columns, with all their names.
COLUMNS = {
    "name": "name",
    "args": "args",
    "inputs": "inputs",
    "template": "input_template",
    "input_template": "input_template",
    "output_template": "output_template",
    "priority": "priority",
    "fpops": "fpops",
}

#: The largest integer of MySQL.
_MOST = 2**31 - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")


class WrongRow(GahpError):
    """A row that does not describe a job; the text begins with the file's name and the line."""

    code = "BG-WRONG-ROW"


class Values:
    """Turns the cells of one file into values.

    Args:
        name: the file's name, for errors.
        directory: relative paths start here; None: they stay as they are.

    Attributes:
        name: as given.
    """

    def __init__(self, name: str, directory: Path | None) -> None:
        self.name = name
        self._directory = directory
        self._templates: dict[str, str] = {}
        self._files: dict[str, File] = {}

    def wrong(self, line: int, error: Exception) -> WrongRow:
        """Return the error for a line."""
        return WrongRow(f"{self.name}:{line}: {error}")

    def file(self, file: File) -> File:
        """Return a file, its path relative to the rows' directory."""
        return file if self._directory is None else relative_to(self._directory, file)

    def file_of(self, text: str) -> File:
        """Return the :meth:`file` that a text describes; the same one for the same text.

        Raises:
            BadRequest: the text does not describe a file.
        """
        found = self._files.get(text)
        if found is None:
            found = self.file(read_file(text))
            if not isinstance(found, InlineFile):  # long texts are not kept twice
                self._files[text] = found
        return found

    def template(self, path: str) -> str:
        """Return the text of a template file; each file is read once.

        Raises:
            BadRequest: it cannot be read.
        """
        if path not in self._templates:
            found = Path(self._directory or "", path)
            try:
                self._templates[path] = found.read_text("utf-8")
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise BadRequest(
                    f"template {str(found)!r} cannot be read: {reason}; check its path"
                ) from error
        return self._templates[path]


def priority(found: object) -> int:
    """Return a priority; raises BadRequest."""
    number = found
    if isinstance(found, str) and _WHOLE.fullmatch(found):
        number = int(found)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > _MOST:
        raise BadRequest(f"priority: expected a whole number, at most {_MOST}; found {found!r}")
    return number


def fpops(found: object) -> float:
    """Return a number of floating-point operations; raises BadRequest."""
    number = math.nan
    # Python would accept 1_000, too, and the digits of every script.
    if isinstance(found, str) and found.isascii() and "_" not in found:
        with suppress(ValueError):
            number = float(found)
    elif isinstance(found, (int, float)) and not isinstance(found, bool):
        with suppress(OverflowError):
            number = float(found)
    if not 0 < number < math.inf:
        raise BadRequest(
            "fpops: expected a positive number of floating-point operations, like 2e12; found "
            f"{found!r}"
        )
    return number


def near(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` with the most similar name, else the list of names."""
    names = list(names)
    return did_you_mean(name, names) or f"; there are: {', '.join(names)}"
