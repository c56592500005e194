"""Turns the rows of a table into jobs, and makes the errors that say which row is wrong."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.api.rows.texts import (
    BATCH,
    INDEX,
    read_file,
    read_named,
    relative_to,
    split_args,
    template_text,
)
from boinc_gahp.errors import BadRequest
from boinc_gahp.quantities import JOB_SIZES
from boinc_gahp.submit.types import InlineFile, Input, Job, RemoteFile
from boinc_gahp.text import did_you_mean, nearest, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from boinc_gahp.api.rows.texts import Patterns
    from boinc_gahp.quantities import Quantity
    from boinc_gahp.submit.types import File, Parameter

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


class _Layout(NamedTuple):
    """What the columns of a row are for.

    Attributes:
        reserved: the keys of the row, by what boinc_gahp uses them for.
        recorded: the keys of what is kept as the jobs' parameters: all others, and settings.
    """

    reserved: Mapping[str, str]
    recorded: tuple[str, ...]


class RowJobs:
    """Makes the jobs of one table; each row is a mapping, in which empty cells are None.

    Args:
        name: the table's name, for errors.
        patterns: what the rows' parameters are filled into.
        parameter: returns a parameter as it is filled into patterns, and its value, for its column
            and cell. Raises BadRequest.
        directory: relative paths start here; None: they stay as they are.
        place: how errors tell the place of a row.
    """

    def __init__(
        self,
        name: str,
        patterns: Patterns,
        parameter: Callable[[str, Any], tuple[str | None, Parameter]],
        directory: Path | None = None,
        place: str = "{name}:{number}",
    ) -> None:
        self._name = name
        self._patterns = patterns
        self._parameter = parameter
        self._directory = directory
        self._place = place
        self._templates: dict[str, str] = {}
        self._files: dict[str, File] = {}
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self._number = 0

    def wrong(self, number: int, error: Exception | str) -> BadRequest:
        """Return the error for a row, which has the number of its line in a file."""
        place = self._place.format(name=self._name, number=number)
        return BadRequest(f"{place}: {error}")

    def job(self, number: int, row: Mapping[Any, Any]) -> Job:
        """Return the next job, of a row with this number.

        Raises:
            BadRequest: the row does not describe a job.
        """
        try:
            return self._job(row)
        except BadRequest as error:
            raise self.wrong(number, error) from error

    def layout(self, keys: Sequence[Any]) -> _Layout:
        """Return what the columns are for.

        Raises:
            BadRequest: a column is there twice or seems to be misspelt, or a placeholder stands for
                none.
        """
        key = tuple(keys)
        if key not in self._layouts:
            self._layouts[key] = self._new_layout(key)
        return self._layouts[key]

    def _new_layout(self, keys: Sequence[Any]) -> _Layout:
        reserved: dict[str, str] = {}
        parameters: dict[str, None] = {}
        for key in keys:
            if not isinstance(key, str) or not key.strip():
                raise BadRequest(f"a column is called {key!r}: expected a text, not empty")
            column = None if key in self._patterns.as_data else column_of(key)
            if column in reserved or key in parameters:
                raise BadRequest(f"column {column or key} appears twice: expected each once")
            if column is None:
                parameters[key] = None
            else:
                reserved[column] = key
        used = self._patterns.used([*parameters, INDEX, BATCH], reserved.values())
        for name in (INDEX, BATCH):
            if name in used and name in parameters:
                raise BadRequest(
                    f"{{{name}}} is what boinc_gahp calls "
                    f"{'the number of a job' if name == INDEX else 'the name of the batch'}, and "
                    "there is a column of this name, too: rename the column"
                )
        for key in parameters:
            if key not in used:
                _misspelt(key)
        if "args" in reserved and self._patterns.has_args:
            raise BadRequest(
                "there is a column args, and arguments for all rows are given, too: leave out one "
                "of them"
            )
        for key in self._patterns.as_data:
            if key not in parameters:
                raise BadRequest(f"there is no column {key!r} to take as data{_near(key, keys)}")
        settings = {key: each for each, key in reserved.items() if each in SETTINGS}
        self._patterns.settings.update(settings)
        recorded = (key for key in keys if key in parameters or key in settings)
        return _Layout(reserved, tuple(recorded))

    def _job(self, row: Mapping[Any, Any]) -> Job:
        layout = self.layout(tuple(row))
        number, self._number = self._number, self._number + 1
        texts: dict[str, str | None] = {}
        parameters: dict[str, Parameter] = {}
        for key in layout.recorded:
            texts[key], parameters[key] = self._parameter(key, row[key])
        texts[INDEX] = str(number)
        if self._patterns.batch is not None:
            texts[BATCH] = self._patterns.batch
        given = {
            column: row[key] for column, key in layout.reserved.items() if row[key] is not None
        }
        patterns = self._patterns
        name = self._text("name", given)
        sizes: dict[str, Any] = {
            each: amount(each, size.quantity, given[each])
            for each, size in JOB_SIZES.items()
            if each in given
        }
        return Job(
            args=self._args(given["args"]) if "args" in given else patterns.args(texts),  # type: ignore[arg-type]
            inputs={
                **patterns.inputs(texts, self._file_of),
                **self._inputs(given),
            },
            name=patterns.name(texts) if name is None else name,
            priority=_priority(given["priority"]) if "priority" in given else None,
            input_template=self._template("input_template", given),
            output_template=self._template("output_template", given),
            parameters=parameters,
            **sizes,
        )

    # -- reserved columns

    def _args(self, found: Any) -> tuple[str, ...]:
        if isinstance(found, str):
            return split_args(found)
        if not isinstance(found, Sequence):
            raise BadRequest(
                "args: expected a string, which is split as a shell would, or a list of words, "
                f"found {shown(found)}"
            )
        return tuple(map(_word, found))

    def _inputs(self, given: Mapping[str, Any]) -> dict[str, File]:
        inputs: dict[str, File] = {}
        if "inputs" in given:
            for name, file in self._named(given["inputs"]):
                _add(inputs, name, file)
        for column, cell in given.items():
            if column.startswith(INPUT):
                name = column.removeprefix(INPUT)
                _add(inputs, name, self._given(name, cell))
        return inputs

    def _named(self, found: Any) -> list[tuple[str, File]]:
        if isinstance(found, str):
            named = map(read_named, split_args(found))
            return [(name, self._file(file)) for name, file in named]
        if not isinstance(found, Mapping):
            raise BadRequest(
                "inputs: expected an object with names and files, or words NAME=FILE, found "
                f"{shown(found)}"
            )
        return [(name, self._given(name, file)) for name, file in found.items()]

    def _given(self, name: str, found: Any) -> File:
        if isinstance(found, str):
            return self._file_of(found)
        if isinstance(found, Input | os.PathLike):
            return self._file(found)
        return self._file(_object(name, found))

    def _file(self, file: File) -> File:
        return file if self._directory is None else relative_to(self._directory, file)

    def _file_of(self, text: str) -> File:
        """Return the file that a text describes; the same one for the same text."""
        found = self._files.get(text)
        if found is None:
            found = self._file(read_file(text))
            if not isinstance(found, InlineFile):  # long texts are not kept twice
                self._files[text] = found
        return found

    def _template(self, column: str, given: Mapping[str, Any]) -> str | None:
        """Return the text of a template file; each file is read once."""
        path = self._text(column, given)
        if path is not None and path not in self._templates:
            self._templates[path] = template_text(Path(self._directory or "", path))
        return None if path is None else self._templates[path]

    @staticmethod
    def _text(column: str, given: Mapping[str, Any]) -> str | None:
        found = given.get(column)
        if column not in given or (isinstance(found, str) and found):
            return found
        raise BadRequest(f"{column}: expected a string, not empty, found {shown(found)}")


def _add(inputs: dict[str, File], name: str, file: File) -> None:
    if name in inputs:
        raise BadRequest(f"input {name!r} is given twice: expected one file for each name")
    inputs[name] = file


def _priority(found: object) -> int:
    """Return a priority; raises BadRequest."""
    number = found
    if isinstance(found, str) and _WHOLE.fullmatch(found):
        number = int(found)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > _MOST:
        raise BadRequest(f"priority: expected a whole number, at most {_MOST}; found {found!r}")
    return number


def amount(what: str, kind: Quantity, given: object) -> float:
    """Return an amount as a number; raises BadRequest, which says of what."""
    try:
        return kind.read(given)
    except BadRequest as error:
        raise BadRequest(f"{what}: {error}") from None


def _near(name: str, names: Iterable[str]) -> str:
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


def _misspelt(key: str) -> None:
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


def _object(name: str, found: Any) -> File:
    """Return an input file that is given as an object; raises BadRequest."""
    if not isinstance(found, Mapping):
        raise BadRequest(f"input {name!r}: expected a string or an object, found {shown(found)}")
    for key in found:
        if key not in _FILE:
            raise BadRequest(f"input {name!r}: there is no {key!r} in a file{_near(key, _FILE)}")
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
    return read_file(f"{'file' if kind == 'path' else kind}:{text}")


def _remote(name: str, url: str, found: Mapping[str, Any]) -> RemoteFile:
    nbytes, md5 = found.get("size"), found.get("md5")
    if not isinstance(nbytes, int) or isinstance(nbytes, bool):
        raise BadRequest(f"input {name!r}: size: expected a number of bytes, found {shown(nbytes)}")
    if not isinstance(md5, str):
        raise BadRequest(f"input {name!r}: md5: expected 32 hexadecimal digits, found {shown(md5)}")
    file = read_file(f"remote:{url},{nbytes},{md5}")
    assert isinstance(file, RemoteFile)  # noqa: S101  (for the type checker)
    return file


class Number(float):
    """A JSON number that remembers how it was written: as an argument it is a word."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Number:
        """Read a number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def parameter_of(
    key: str, cell: Any, written: Callable[[bool | float], str] = json.dumps
) -> tuple[str | None, Parameter]:
    """Return a parameter as it is filled into patterns (None: it is empty), and its value.

    Args:
        key: its column.
        cell: of JSON or of Python.
        written: writes a number, true or false.

    Raises:
        BadRequest: it is neither text nor a number, true or false.
    """
    if isinstance(cell, os.PathLike):
        cell = os.fsdecode(cell)
    if cell is None or isinstance(cell, str):
        return cell or None, cell
    if isinstance(cell, Number):
        # 1e400 is a JSON number, but none that Python or the manifest can hold.
        return cell.text, float(cell) if math.isfinite(cell) else cell.text
    if isinstance(cell, (bool, int, float)):
        return written(cell), cell
    hint = (
        '; pandas writes rows with to_json(orient="records")' if isinstance(cell, Mapping) else ""
    )
    raise BadRequest(f"{key!r}: expected text, a number, true or false, found {shown(cell)}{hint}")


def _word(found: Any) -> str:
    """Return a word of a list of arguments."""
    if isinstance(found, Number):
        return found.text
    value = os.fsdecode(found) if isinstance(found, os.PathLike) else plain(found)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadRequest(f"args: expected strings or numbers, found {shown(found)}")
    return str(value)


def plain(cell: Any) -> Any:  # noqa: PLR0911
    """Return numpy's and pandas' numbers and times as Python's numbers and texts."""
    if type(cell) in (str, int, float, bool):
        return cell
    if type(cell).__name__ in {"bool", "bool_"}:  # numpy's
        return bool(cell)
    if isinstance(cell, float):
        return float(cell)
    if isinstance(cell, Integral):
        return int(cell)
    if isinstance(cell, Real):
        # A float32 prints as the number that was meant; float() adds digits.
        with suppress(ValueError):
            return float(str(cell))
        return float(cell)
    return cell.isoformat() if hasattr(cell, "isoformat") else cell


def shown(found: Any) -> str:
    """Return a value for an error, as JSON if possible."""
    return shorten(found if isinstance(found, str) else json.dumps(found, default=repr), 60)
