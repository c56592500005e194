"""Rows of JSON: an object on each line, or a list of objects."""

from __future__ import annotations

import json
import math
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

from boinc_gahp.api.row_values import no_parameter, shown
from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.api.row_values import Values
    from boinc_gahp.submit.types import Parameter


class _Number(float):
    """A JSON number that remembers how it was written: as an argument it is a word."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> _Number:
        """Read a number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


class JsonCells:
    """See :class:`boinc_gahp.api.row_values.Cells`; null is an empty cell."""

    def reserved(self, column: str, cell: Any) -> Any:  # noqa: ARG002
        """Return a cell."""
        return cell

    def parameter(self, key: str, cell: Any) -> tuple[str | None, Parameter]:
        """Return a parameter as it is written, and its value."""
        if cell is None or isinstance(cell, str):
            return cell or None, cell
        if isinstance(cell, _Number):
            # 1e400 is a JSON number, but none that Python or the manifest can hold.
            return cell.text, float(cell) if math.isfinite(cell) else cell.text
        if isinstance(cell, (bool, int)):
            return json.dumps(cell), cell
        raise no_parameter(key, cell)

    def word(self, found: Any) -> str:
        """Return an argument."""
        if isinstance(found, str):
            return found
        if isinstance(found, _Number):
            return found.text
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        raise BadRequest(f"args: expected strings or numbers, found {shown(found)}")


def json_rows(
    head: list[str], lines: Iterator[str], values: Values
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows, each with the line on which it begins.

    Args:
        head: the first lines; the last of them is the first that is not empty.
        lines: the lines after these.
        values: makes the errors.

    Raises:
        WrongRow: a row is not an object.
    """
    if head[-1].lstrip().startswith("["):
        yield from _listed("".join(chain(head, lines)), values)
        return
    for number, line in enumerate(chain(head, lines), 1):
        if line.strip():
            found = _decoded(line, number, values, "one JSON object on the line")
            yield number, _mapping(found, number, values)


def _listed(text: str, values: Values) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a list; decoded twice, because errors tell the line."""
    found = _decoded(text, 1, values, "a list of JSON objects")
    place, line, counted = text.index("[") + 1, 1, 0
    for each in found:
        begin = text.index("{", place) if isinstance(each, dict) else place
        line, counted = line + text.count("\n", counted, begin), begin
        yield line, _mapping(each, line, values)
        place = _DECODER.raw_decode(text, begin)[1]


def _decoded(text: str, number: int, values: Values, expected: str) -> Any:
    """Return the value of a text that begins on this line."""
    try:
        return _DECODER.decode(text.rstrip())
    except json.JSONDecodeError as error:
        found = shown(text[error.pos : error.pos + 100].strip()) or "the end"
        told = f"expected {expected}, found {found}: {error.msg} at column {error.colno}"
        raise values.wrong(number + error.lineno - 1, BadRequest(told)) from error
    except (BadRequest, ValueError, RecursionError) as error:
        raise values.wrong(number, BadRequest(f"expected {expected}: {error}")) from error


def _mapping(found: Any, number: int, values: Values) -> dict[str, Any]:
    if not isinstance(found, dict):
        told = f"expected a JSON object for each job, found {shown(found)}"
        raise values.wrong(number, BadRequest(told))
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadRequest(f"{twice!r} is given twice: expected each key once")
    return found


def _no_number(word: str) -> NoReturn:
    raise BadRequest(f"{word} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_float=_Number, parse_constant=_no_number)
