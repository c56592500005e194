"""A table of parameters becomes a list of jobs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from boinc_gahp.api._row_jobs import RowJobs
from boinc_gahp.api.patterns import Patterns
from boinc_gahp.api.row_values import Values, no_parameter
from boinc_gahp.api.rows import read_rows
from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from boinc_gahp.api.types import File, Job
    from boinc_gahp.submit.types import Parameter


def jobs_from(
    rows: str | os.PathLike[str] | Iterable[Mapping[str, Any]],
    *,
    args: Sequence[object] | str | None = None,
    inputs: Mapping[str, File] | None = None,
    name: str | None = None,
    as_data: Collection[str] = (),
) -> list[Job]:
    """Return a job for each row of a table of parameters.

    ::

        jobs = jobs_from(
            "params.csv",
            args="--seed {seed} --n {n}",
            inputs={"in": "{path}"},
            name="{batch}_{seed}",
        )
        batch = project.submit("uppercase", jobs, name="sweep")

    Every column is a parameter, except ``name``, ``args``, ``inputs``, ``input:NAME``,
    ``input_template`` (or ``template``), ``output_template``, ``priority``, ``fpops``, ``memory``,
    ``disk`` and ``delay``, which say this of the job itself. A parameter can be used in braces.
    ``{index}`` is the job's number, from 0, ``{seed:4}`` a whole number of at least four digits,
    ``{{`` and ``}}`` are braces. Values are filled in as they are written in the file; braces in
    them are left as they are. Parameters, and columns of names, priorities and sizes, are kept in
    :attr:`Job.parameters`.

    Args:
        rows: the path of a file of CSV or JSON (:doc:`/batch`, "Jobs"); or mappings; or a
            DataFrame. In mappings and DataFrames None, NaN and ``""`` are empty cells, and numpy's
            numbers are plain numbers.
        args: words, or one string. It is split as a shell would before values are filled in, so a
            value with spaces stays one word.
        inputs: files by open names, as texts for ``batch submit --input``. A path that has a value
            of a file's row is relative to this file's directory, any other to the working
            directory. A row's ``input:NAME`` wins. :class:`LocalFile` and others are used as they
            are.
        name: of the jobs; ``{batch}`` is their batch's name. None: the batch's name and the job's
            number. A row's ``name`` wins.
        as_data: names of columns that are parameters only, such as ``name`` or ``memory``.

    Raises:
        WrongRow: a row or the header is wrong, or the file cannot be read; says where.
        BadRequest: an argument is wrong.
    """
    patterns = Patterns(args, inputs, name, as_data=as_data)
    if isinstance(rows, (str, os.PathLike)):
        return [row.job for row in read_rows(rows, patterns=patterns)]
    values = Values("rows", None, "{name}[{number}]")
    jobs = RowJobs(values, _PythonCells(), patterns)
    made = []
    for number, row in enumerate(_mappings(rows)):
        if not isinstance(row, Mapping):
            raise BadRequest(
                f"rows[{number}] is a {type(row).__name__}: expected a mapping, as in "
                "{'seed': 1, 'n': 10}"
            )
        try:
            made.append(jobs.job(row))
        except BadRequest as error:
            raise values.wrong(number, error) from error
    return made


def _mappings(rows: Any) -> Iterable[Any]:
    """Return a DataFrame's rows, of pandas or polars, as mappings; and other iterables as such."""
    if not isinstance(rows, Mapping):
        if hasattr(rows, "to_dicts"):
            return rows.to_dicts()  # type: ignore[no-any-return]
        if hasattr(rows, "to_dict"):
            return rows.to_dict("records")  # type: ignore[no-any-return]
        if isinstance(rows, Iterable):
            return rows
    raise BadRequest(
        f"rows is a {type(rows).__name__}: expected a path, a list of mappings, or a DataFrame"
    )


class _PythonCells:
    """See :class:`boinc_gahp.api.row_values.Cells`."""

    def reserved(self, column: str, cell: Any) -> Any:  # noqa: ARG002
        return None if _is_empty(cell) else _plain(cell)

    def parameter(self, key: str, cell: Any) -> tuple[str | None, Parameter]:
        if _is_empty(cell):
            return None, None
        value = _plain(cell)
        if isinstance(value, os.PathLike):
            value = os.fsdecode(value)
        if not isinstance(value, (str, int, float)):
            raise no_parameter(key, cell)
        return str(value), value

    def word(self, found: Any) -> str:
        if isinstance(found, os.PathLike):
            return os.fsdecode(found)
        value = _plain(found)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise BadRequest(f"args: expected strings or numbers, found {found!r}")
        return str(value)


def _is_empty(cell: Any) -> bool:
    """Whether a cell is None, "", NaN, or what pandas has for a missing value."""
    if cell is None or (isinstance(cell, str) and not cell):
        return True
    if isinstance(cell, (str, bytes, Mapping)) or hasattr(cell, "__len__"):
        return False
    try:
        return bool(cell != cell)  # noqa: PLR0124
    except TypeError:  # pandas.NA
        return True


def _plain(cell: Any) -> Any:  # noqa: PLR0911
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
