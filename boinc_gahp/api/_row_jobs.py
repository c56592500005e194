"""Turns the rows of a table into jobs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.api.files import read_named, split_args
from boinc_gahp.api.patterns import BATCH, INDEX
from boinc_gahp.api.request import JOB_SIZES
from boinc_gahp.api.row_values import (
    INPUT,
    SETTINGS,
    column_of,
    file_of,
    misspelt,
    near,
    priority,
    shown,
    size,
)
from boinc_gahp.api.types import InlineFile, Job, LocalFile, RemoteFile, StagedFile
from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from boinc_gahp.api.patterns import Patterns
    from boinc_gahp.api.row_values import Cells, Values
    from boinc_gahp.api.types import File
    from boinc_gahp.submit.types import Parameter

_FILES = (LocalFile, StagedFile, RemoteFile, InlineFile)


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the columns of a row are for.

    Attributes:
        reserved: the keys of the row, by what boinc_gahp uses them for.
        recorded: the keys of what is kept as the jobs' parameters: all others, and settings.
    """

    reserved: Mapping[str, str]
    recorded: tuple[str, ...]


class RowJobs:
    """Makes the jobs of one table.

    Args:
        values: reads what cells name.
        cells: reads the cells themselves.
        patterns: what the rows' parameters are filled into.
    """

    def __init__(self, values: Values, cells: Cells, patterns: Patterns) -> None:
        self.values = values
        self._cells = cells
        self._patterns = patterns
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self._number = 0

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
                misspelt(key)
        if "args" in reserved and self._patterns.has_args:
            raise BadRequest(
                "there is a column args, and arguments for all rows are given, too: leave out one "
                "of them"
            )
        for key in self._patterns.as_data:
            if key not in parameters:
                raise BadRequest(f"there is no column {key!r} to take as data{near(key, keys)}")
        settings = {key: each for each, key in reserved.items() if each in SETTINGS}
        self._patterns.settings.update(settings)
        recorded = (key for key in keys if key in parameters or key in settings)
        return _Layout(reserved, tuple(recorded))

    def job(self, row: Mapping[Any, Any]) -> Job:
        """Return the next job.

        Raises:
            BadRequest: the row does not describe a job.
        """
        layout = self.layout(tuple(row))
        number, self._number = self._number, self._number + 1
        texts: dict[str, str | None] = {}
        parameters: dict[str, Parameter] = {}
        for key in layout.recorded:
            texts[key], parameters[key] = self._cells.parameter(key, row[key])
        texts[INDEX] = str(number)
        if self._patterns.batch is not None:
            texts[BATCH] = self._patterns.batch
        given: dict[str, Any] = {}
        for column, key in layout.reserved.items():
            cell = self._cells.reserved(column, row[key])
            if cell is not None:
                given[column] = cell
        patterns = self._patterns
        name = self._text("name", given)
        sizes: dict[str, Any] = {
            each: size(each, given[each]) for each in JOB_SIZES if each in given
        }
        return Job(
            args=self._args(given["args"]) if "args" in given else patterns.args(texts),  # type: ignore[arg-type]
            inputs={
                **patterns.inputs(texts, self.values.file_of),
                **self._inputs(given),
            },
            name=patterns.name(texts) if name is None else name,
            priority=priority(given["priority"]) if "priority" in given else None,
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
        return tuple(self._cells.word(each) for each in found)

    def _inputs(self, given: Mapping[str, Any]) -> dict[str, File]:
        inputs: dict[str, File] = {}
        if "inputs" in given:
            for name, file in self._named(given["inputs"]):
                _add(inputs, name, file)
        for column, cell in given.items():
            if column.startswith(INPUT):
                name = column.removeprefix(INPUT)
                _add(inputs, name, self._file(name, cell))
        return inputs

    def _named(self, found: Any) -> list[tuple[str, File]]:
        if isinstance(found, str):
            named = map(read_named, split_args(found))
            return [(name, self.values.file(file)) for name, file in named]
        if not isinstance(found, Mapping):
            raise BadRequest(
                "inputs: expected an object, open names and files, or words NAME=FILE, found "
                f"{shown(found)}"
            )
        return [(name, self._file(name, file)) for name, file in found.items()]

    def _file(self, name: str, found: Any) -> File:
        if isinstance(found, str):
            return self.values.file_of(found)
        if isinstance(found, (*_FILES, os.PathLike)):
            return self.values.file(found)
        return self.values.file(file_of(name, found))

    def _template(self, column: str, given: Mapping[str, Any]) -> str | None:
        path = self._text(column, given)
        return None if path is None else self.values.template(path)

    @staticmethod
    def _text(column: str, given: Mapping[str, Any]) -> str | None:
        found = given.get(column)
        if column not in given or (isinstance(found, str) and found):
            return found
        raise BadRequest(f"{column}: expected a string, not empty, found {shown(found)}")


def _add(inputs: dict[str, File], name: str, file: File) -> None:
    if name in inputs:
        raise BadRequest(f"input {name!r} is given twice: expected one file for each open name")
    inputs[name] = file
