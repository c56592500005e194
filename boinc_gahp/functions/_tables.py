"""Reads the CSV of a table that a stranger's computer sent."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from boinc_gahp.functions.runner import MOST_CELLS, MOST_COLUMNS, NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The most bytes of a table's file: each of its cells becomes an object, which is larger.
MOST_TABLE_BYTES = 200_000_000
_TIMES = re.compile(r"datetime64\[(s|ms|us|ns)\]")
#: A number has no more digits: a long one takes much time to read.
_MOST_DIGITS = 40


def read_table(pandas: Any, file: BinaryIO, found: Mapping[str, Any]) -> Any:
    """Return a DataFrame or a Series.

    Args:
        pandas: the module.
        file: the CSV.
        found: what ``result.json`` says of the table (:mod:`boinc_gahp.functions.values`).

    Raises:
        ValueError, TypeError, LookupError, csv.Error: file and description are not a table.
    """
    columns = [_column(each) for each in found["columns"]]
    rows = found["rows"]
    if type(rows) is not int or rows < 0 or len(columns) > MOST_COLUMNS:
        raise ValueError("a table has an impossible number of rows or columns")
    # Each cell has two quotation marks, and a comma or the end of a line.
    most = min(os.fstat(file.fileno()).st_size // 3, MOST_CELLS) if columns else MOST_CELLS
    if rows * max(len(columns), 1) > most:
        raise ValueError(
            f"a table cannot have {rows:,} rows in a file of this size, or is too large"
        )
    cells = _cells(file, rows, columns)
    series = [column.of(pandas, texts) for column, texts in zip(columns, cells, strict=True)]
    index = series.pop(0) if found["index"] is True else None
    names = [each.name for each in columns][len(columns) - len(series) :]
    if found["series"] is True:
        (table,) = series
        table.name = names[0]
    elif series:
        table = pandas.concat(series, axis=1)
        table.columns = pandas.Index(names)
    else:
        table = pandas.DataFrame(index=range(rows), columns=pandas.Index([], dtype=object))
    if index is not None:
        table.index = pandas.Index(index, name=columns[0].name)
    return table


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its name, its type, and the numbers of the rows whose cell is missing."""

    name: str | None
    kind: str
    missing: list[int]

    def of(self, pandas: Any, texts: list[str]) -> Any:
        cells: list[Any] = list(texts)
        for row in self.missing:
            cells[row] = None
        if self.kind == "str":
            return pandas.Series(cells, dtype=None if cells else "object")
        if self.kind == "bool":
            if not {"True", "False"}.issuperset(cells):
                raise ValueError("a cell is neither True nor False")
            return pandas.Series([each == "True" for each in cells], dtype="bool")
        if self.kind.startswith("datetime"):
            return pandas.Series(import_module("numpy").array(cells, dtype=self.kind))
        read: Callable[[str], Any] = float if self.kind.startswith("float") else whole_number
        return pandas.Series([read(each) for each in cells], dtype=self.kind)


def whole_number(digits: str) -> int:
    """Return a number; raises ValueError if it is none, or so long that it takes much time."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def _column(found: Any) -> _Column:
    name, kind, missing = found["name"], found["type"], found["missing"]
    if not (name is None or isinstance(name, str)):
        raise TypeError("a column has a name that is no text")
    if kind not in NUMBERS and kind != "str" and _TIMES.fullmatch(kind) is None:
        raise ValueError("a column has an unknown type")
    if kind in NUMBERS and missing:
        raise ValueError("a column of numbers has missing cells")
    if not all(type(each) is int and each >= 0 for each in missing):
        raise ValueError("the missing cells of a column are wrong")
    return _Column(name, kind, missing)


def _cells(file: BinaryIO, rows: int, columns: list[_Column]) -> list[list[str]]:
    """Return the texts of a table's cells, by column."""
    cells: list[list[str]] = [[] for _ in columns]
    lines = csv.reader((line.decode() for line in file), strict=True)
    if next(lines, None) != [each.name or "" for each in columns]:
        raise ValueError("the first row of a table is not the names of its columns")
    for row in lines:
        if len(row) != len(columns) or len(cells[0]) >= rows:
            raise ValueError("a table does not have as many rows and columns as it says")
        for cell, column in zip(row, cells, strict=True):
            column.append(cell)
    if columns and len(cells[0]) != rows:
        raise ValueError("a table does not have as many rows and columns as it says")
    return cells
