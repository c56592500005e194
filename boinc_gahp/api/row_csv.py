"""Rows of CSV, separated by comma, semicolon or tab, like the header; quoted as in spreadsheets."""

from __future__ import annotations

import csv
from itertools import chain
from typing import TYPE_CHECKING

from boinc_gahp.api.files import read_named, split_args
from boinc_gahp.api.row_values import COLUMNS, fpops, near, priority
from boinc_gahp.api.types import Job
from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boinc_gahp.api.row_values import Values
    from boinc_gahp.api.types import File

_DELIMITERS = ",;\t"
_INPUT = "input:"
#: The columns that are not about inputs.
_OTHERS = tuple(dict.fromkeys(column for column in COLUMNS.values() if column != "inputs"))


def csv_rows(head: list[str], lines: Iterator[str], values: Values) -> Iterator[tuple[int, Job]]:
    """Yield the jobs, each with the line on which it begins.

    Args:
        head: the first lines; the last of them is the header, the others are empty.
        lines: the lines after the header.
        values: turns cells into values.

    Raises:
        WrongRow: a row does not describe a job.
    """
    reader = csv.reader(chain(head, lines), delimiter=_delimiter(head[-1]), strict=True)
    columns: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
            if cells is None:
                return
            if columns is None:
                columns = _columns(cells) if any(map(str.strip, cells)) else None
            elif any(map(str.strip, cells)):
                yield line, _job(columns, cells, values)
        except csv.Error as error:
            given = next((ours for its, ours in _CSV_ERRORS.items() if its in str(error)), error)
            raise values.wrong(line, csv.Error(str(given))) from error
        except BadRequest as error:
            raise values.wrong(line, error) from error


#: Python's messages are for programmers; these replace the ones that users meet.
_CSV_ERRORS = {
    "unexpected end of data": "a quotation mark that opens here is not closed: close or remove it",
    "new-line character": "lines end in bare carriage returns: save the file with usual line ends",
}


def _delimiter(header: str) -> str:
    """Return the delimiter that gives a header the most known columns."""

    def columns(delimiter: str) -> tuple[int, int]:
        try:
            cells = next(csv.reader([header], delimiter=delimiter))
        except csv.Error:
            return (0, 0)
        return (sum(_column(cell) is not None for cell in cells), len(cells))

    return max(_DELIMITERS, key=columns)


def _column(cell: str) -> str | None:
    """Return what a column is for; None: the column is unknown."""
    cell = cell.strip()
    if cell[: len(_INPUT)].lower() == _INPUT:
        name = cell[len(_INPUT) :].strip()
        return _INPUT + name if name else None
    return COLUMNS.get(cell.lower())


def _columns(cells: Sequence[str]) -> list[str]:
    columns = []
    for cell in cells:
        # Spreadsheets write empty columns beside the table.
        column = _column(cell) if cell.strip() else ""
        if column is None:
            raise BadRequest(
                f"expected the names of columns, found {cell.strip()!r}"
                f"{near(cell.strip(), (*COLUMNS, 'input:NAME'))}"
            )
        if column and column in columns:
            raise BadRequest(f"column {column} appears twice: expected each once")
        columns.append(column)
    return columns


def _job(columns: Sequence[str], cells: Sequence[str], values: Values) -> Job:
    if len(cells) < len(columns) or any(map(str.strip, cells[len(columns) :])):
        raise BadRequest(
            f"expected {len(columns)} cells, as in the header, found {len(cells)}: quote cells "
            "that hold the delimiter"
        )
    found = {column: cell for column, cell in zip(columns, cells, strict=False) if cell.strip()}
    if "" in found:
        raise BadRequest(f"the cell {found['']!r} is in a column without a name")
    inputs: dict[str, File] = {}
    for word in split_args(found.pop("inputs", "")):
        name, named = read_named(word)
        _add(inputs, name, values.file(named))
    given = {column: found.pop(column, "").strip() for column in _OTHERS}
    for column, cell in found.items():
        text = cell.strip()
        file = values.file_of(cell.lstrip() if text.startswith("inline:") else text)
        _add(inputs, column.removeprefix(_INPUT), file)
    return Job(
        args=split_args(given["args"]),
        inputs=inputs,
        name=given["name"] or None,
        priority=priority(given["priority"]) if given["priority"] else None,
        fpops=fpops(given["fpops"]) if given["fpops"] else None,
        input_template=_template(given["input_template"], values),
        output_template=_template(given["output_template"], values),
    )


def _template(path: str, values: Values) -> str | None:
    return values.template(path) if path else None


def _add(inputs: dict[str, File], name: str, file: File) -> None:
    if name in inputs:
        raise BadRequest(f"input {name!r} is given twice: expected one file for each open name")
    inputs[name] = file
