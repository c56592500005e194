"""Checks the cells of a row, and makes the errors that say which one is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from boinc_gahp.api.files import read_file, relative_to
from boinc_gahp.api.request import JOB_SIZES
from boinc_gahp.api.types import InlineFile, LocalFile, RemoteFile, StagedFile
from boinc_gahp.errors import BadRequest, GahpError
from boinc_gahp.text import did_you_mean, nearest, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.api.types import File
    from boinc_gahp.submit.types import Parameter

#: The columns that boinc_gahp uses itself, with all their names; and ``input:NAME``.
COLUMNS = {
    "name": "name",
    "args": "args",
    "inputs": "inputs",
    "template": "input_template",
    "input_template": "input_template",
    "output_template": "output_template",
    "priority": "priority",
    **{name: name for name in JOB_SIZES},
}
#: Those that a table of parameters may have by chance.
SETTINGS = ("name", "priority", *JOB_SIZES)
#: Before the open name of the input whose files are in a column.
INPUT = "input:"
#: A column that no placeholder uses is misspelt if it is this similar to one of the above.
_ALIKE = 0.8
#: Likewise, for what stands before a colon.
_ALIKE_INPUT = 0.6

#: The largest integer of MySQL.
_MOST = 2**31 - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")
#: Keys of an input file that is an object; the first four exclude each other.
_FILE = ("path", "staged", "url", "inline", "size", "md5")


class WrongRow(GahpError):
    """A row that does not describe a job; the text begins with the file's name and the line."""

    code = "BG-WRONG-ROW"


class Values:
    """Turns the cells of one file into values.

    Args:
        name: the file's name, for errors.
        directory: relative paths start here; None: they stay as they are.
        place: how errors tell the place of a row.

    Attributes:
        name: as given.
    """

    def __init__(self, name: str, directory: Path | None, place: str = "{name}:{number}") -> None:
        self.name = name
        self._place = place
        self._directory = directory
        self._templates: dict[str, str] = {}
        self._files: dict[str, File] = {}

    def wrong(self, number: int, error: Exception) -> WrongRow:
        """Return the error for a row, which has the number of its line in a file."""
        place = self._place.format(name=self.name, number=number)
        return WrongRow(f"{place}: {error}")

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


def size(column: str, found: object) -> float:
    """Return the quantity in a column; raises BadRequest."""
    try:
        return JOB_SIZES[column].read(found)
    except BadRequest as error:
        raise BadRequest(f"{column}: {error}") from None


def near(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` with the most similar name, else the list of names."""
    names = list(names)
    return did_you_mean(name, names) or f"; there are: {', '.join(names)}"


def column_of(key: str) -> str | None:
    """Return what boinc_gahp uses a column for; None: it is a parameter."""
    key = key.strip()
    if key[: len(INPUT)].lower() == INPUT:
        name = key[len(INPUT) :].strip()
        if not name:
            raise BadRequest(f"column {key!r} names no input; did you mean inputs, or input:NAME?")
        return INPUT + name
    return COLUMNS.get(key.lower())


def misspelt(key: str) -> None:
    """Raise BadRequest if a column that nothing uses was probably meant to be another."""
    before, colon, after = key.partition(":")
    meant = nearest(key.strip(), COLUMNS, alike=_ALIKE)
    if colon and nearest(before.strip(), [INPUT[:-1]], alike=_ALIKE_INPUT):
        meant = INPUT + after.strip()
    elif key.strip().lower() == INPUT[:-1]:
        meant = "inputs, or input:NAME"
    if meant:
        raise BadRequest(
            f"column {key!r} is neither in a placeholder nor one that boinc_gahp uses; did you "
            f"mean {meant}? A parameter that is only for your results needs another name"
        )


def file_of(name: str, found: Any) -> File:
    """Return an input file that is given as an object; raises BadRequest."""
    if not isinstance(found, Mapping):
        raise BadRequest(f"input {name!r}: expected a string or an object, found {shown(found)}")
    for key in found:
        if key not in _FILE:
            raise BadRequest(f"input {name!r}: there is no {key!r} in a file{near(key, _FILE)}")
    kinds = [key for key in _FILE[:4] if key in found]
    if len(kinds) != 1:
        raise BadRequest(
            f"input {name!r}: expected one of path, staged, url and inline, found "
            f"{' and '.join(kinds) or 'none'}"
        )
    kind = kinds[0]
    text = found[kind]
    if not isinstance(text, str) or not text:
        raise BadRequest(
            f"input {name!r}: {kind}: expected a string, not empty, found {shown(text)}"
        )
    if kind == "url":
        return _remote(name, text, found)
    if len(found) > 1:
        raise BadRequest(
            f"input {name!r}: size and md5 go with a url, not with {kind}: leave them out"
        )
    if kind == "path":
        return LocalFile(text)
    return StagedFile(text) if kind == "staged" else InlineFile(text)


def _remote(name: str, url: str, found: Mapping[str, Any]) -> RemoteFile:
    nbytes, md5 = found.get("size"), found.get("md5")
    if not isinstance(nbytes, int) or isinstance(nbytes, bool):
        raise BadRequest(f"input {name!r}: size: expected a number of bytes, found {shown(nbytes)}")
    if not isinstance(md5, str):
        raise BadRequest(f"input {name!r}: md5: expected 32 hexadecimal digits, found {shown(md5)}")
    file = read_file(f"remote:{url},{nbytes},{md5}")
    assert isinstance(file, RemoteFile)  # noqa: S101  (for the type checker)
    return file


class Cells(Protocol):
    """How one form of tables writes its cells."""

    def reserved(self, column: str, cell: Any) -> Any:
        """Return the cell of a column that boinc_gahp uses; None: it is empty."""

    def parameter(self, key: str, cell: Any) -> tuple[str | None, Parameter]:
        """Return a parameter as it is filled into patterns (None: it is empty), and its value.

        Raises:
            BadRequest: it is neither text nor a number, true or false.
        """

    def word(self, found: Any) -> str:
        """Return a word of a list of arguments; raises BadRequest."""


def no_parameter(key: str, found: Any) -> BadRequest:
    """Return the error for a value that is no parameter."""
    hint = ""
    if isinstance(found, Mapping):
        hint = '; pandas writes rows with to_json(orient="records")'
    return BadRequest(
        f"{key!r}: expected text, a number, true or false, found {shown(found)}{hint}"
    )


def shown(found: Any) -> str:
    """Return a value for an error, as JSON if possible."""
    return shorten(found if isinstance(found, str) else json.dumps(found, default=repr), 60)
