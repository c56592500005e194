"""Rows of CSV, separated by comma, semicolon or tab, like the header; quoted as in spreadsheets."""

from __future__ import annotations

import csv
import math
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from boinc_gahp.api.row_values import INPUT, column_of
from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boinc_gahp.api._row_jobs import RowJobs
    from boinc_gahp.submit.types import Parameter

_DELIMITERS = ",;\t"
#: A number as JSON writes it, so that 007 stays a text.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def csv_rows(
    head: list[str], lines: Iterator[str], jobs: RowJobs
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows, each with the line on which it begins.

    Args:
        head: the first lines; the last of them is the header, the others are empty.
        lines: the lines after the header.
        jobs: checks the header, and makes the errors.

    Raises:
        WrongRow: the header is wrong, or a row does not fit it.
    """
    reader = csv.reader(chain(head, lines), delimiter=_delimiter(head[-1]), strict=True)
    keys: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
            if cells is None:
                return
            if not any(map(str.strip, cells)):
                continue
            if keys is None:
                keys = [cell.strip() for cell in cells]
                # Spreadsheets write empty columns beside the table.
                jobs.layout([key for key in keys if key])
                continue
            row = _cells(keys, cells)
        except csv.Error as error:
            given = next((ours for its, ours in _CSV_ERRORS.items() if its in str(error)), error)
            raise jobs.values.wrong(line, csv.Error(str(given))) from error
        except BadRequest as error:
            raise jobs.values.wrong(line, error) from error
        yield line, row


#: Python's messages are for programmers; these replace the ones that users meet.
_CSV_ERRORS = {
    "unexpected end of data": "a quotation mark that opens here is not closed: close or remove it",
    "new-line character": "lines end in bare carriage returns: save the file with usual line ends",
    "field limit": f"a cell has more than {csv.field_size_limit():,} characters: put its text into "
    "a file of its own, or close the quotation mark that opens it",
}


def _delimiter(header: str) -> str:
    """Return the delimiter that gives a header the most known columns, or else the most columns."""

    def columns(delimiter: str) -> tuple[int, int]:
        try:
            cells = next(csv.reader([header], delimiter=delimiter))
        except csv.Error:
            return (0, 0)
        return (sum(map(_is_known, cells)), len(cells))

    return max(_DELIMITERS, key=columns)


def _is_known(cell: str) -> bool:
    try:
        return column_of(cell) is not None
    except BadRequest:  # "input:" without a name
        return True


class CsvCells:
    """See :class:`boinc_gahp.api.row_values.Cells`."""

    def reserved(self, column: str, cell: str) -> str | None:
        """Return a cell without the spaces around it; those at the end of an inline text stay."""
        text = cell.strip()
        is_text = column.startswith(INPUT) and text.startswith("inline:")
        return (cell.lstrip() if is_text else text) or None

    def parameter(self, key: str, cell: str) -> tuple[str | None, Parameter]:  # noqa: ARG002
        """Return a parameter as it is written, and as a number if it is written like one."""
        text = cell.strip()
        return text or None, _number(text) if _NUMBER.fullmatch(text) else text or None

    def word(self, found: Any) -> str:
        """Return an argument; there are no lists of them in CSV."""
        return str(found)


def _number(text: str) -> Parameter:
    """Return a number, or the text if Python has no such number."""
    try:
        number = float(text) if set(text) & set(".eE") else int(text)
    except ValueError:  # too many digits
        return text
    return number if math.isfinite(number) else text


def _cells(keys: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    if len(cells) < len(keys) or any(map(str.strip, cells[len(keys) :])):
        raise BadRequest(
            f"expected {len(keys)} cells, as in the header, found {len(cells)}: quote cells "
            "that hold the delimiter"
        )
    found = {}
    for key, cell in zip(keys, cells, strict=False):
        if key:
            found[key] = cell
        elif cell.strip():
            raise BadRequest(
                f"the cell {cell!r} is in a column without a name (pandas writes an index like "
                "this: use to_csv(index=False))"
            )
    return found
