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

_SPACE = " \t\r\n"


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
            try:
                yield number, _object(line)
            except BadRequest as error:
                raise values.wrong(number, error) from error


def _listed(text: str, values: Values) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a list; read one by one, because errors tell the line."""
    place, line, counted = _after_space(text, text.index("[") + 1), 1, 0
    is_first = True
    while True:
        try:
            following = _next_place(text, place, is_first=is_first)
            if following is None:
                return
            place = following
            line, counted = line + text.count("\n", counted, place), place
            found, place = _next_object(text, place)
        except BadRequest as error:
            raise values.wrong(line, error) from error
        is_first = False
        yield line, found
        place = _after_space(text, place)


def _next_place(text: str, place: int, *, is_first: bool) -> int | None:
    """Return where the next object of a list begins; None if there is none."""
    if text[place : place + 1] == "]":
        if text[place + 1 :].strip():
            raise BadRequest("there is something after the end of the list")
        return None
    if is_first:
        return place
    if text[place : place + 1] != ",":
        raise BadRequest(f"expected a comma or the end of the list, found {_at(text, place)}")
    return _after_space(text, place + 1)


def _next_object(text: str, place: int) -> tuple[dict[str, Any], int]:
    """Return the object that begins here, and the place behind it."""
    try:
        found, end = _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise BadRequest(
            f"expected a JSON object in the list, found {_at(text, place)}: {error.msg} at column "
            f"{error.colno} of line {error.lineno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"expected a JSON object in the list: {error}") from error
    if not isinstance(found, dict):
        raise BadRequest(f"expected a list of JSON objects, found {shown(found)} in it")
    return found, end


def _after_space(text: str, place: int) -> int:
    while text[place : place + 1] in _SPACE and place < len(text):
        place += 1
    return place


def _at(text: str, place: int) -> str:
    return shown(text[place : place + 100]) or "the end of the file"


def _object(line: str) -> dict[str, Any]:
    try:
        found = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        raise BadRequest(
            f"expected one JSON object on the line, found {shown(line.strip())}: {error.msg} "
            f"at column {error.colno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"expected one JSON object on the line: {error}") from error
    if not isinstance(found, dict):
        raise BadRequest(f"expected one JSON object on the line, found {shown(line.strip())}")
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
