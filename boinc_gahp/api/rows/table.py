"""A table of parameters becomes a list of jobs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from boinc_gahp.api.rows.jobs import RowJobs, parameter_of, plain
from boinc_gahp.api.rows.patterns import Patterns
from boinc_gahp.api.rows.reading import read_rows
from boinc_gahp.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from boinc_gahp.api.types import File, Job


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
        BadRequest: a row or the header is wrong, or the file cannot be read; says where.
        BadRequest: an argument is wrong.
    """
    patterns = Patterns(args, inputs, name, as_data=as_data)
    if isinstance(rows, (str, os.PathLike)):
        return [row.job for row in read_rows(rows, patterns=patterns)]
    parameter = partial(parameter_of, written=str)
    jobs = RowJobs("rows", patterns, parameter, place="{name}[{number}]")
    made = []
    for number, row in enumerate(_mappings(rows)):
        if not isinstance(row, Mapping):
            raise BadRequest(
                f"rows[{number}] is a {type(row).__name__}: expected a mapping, as in "
                "{'seed': 1, 'n': 10}"
            )
        made.append(jobs.job(number, {key: _cell(cell) for key, cell in row.items()}))
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


def _cell(cell: Any) -> Any:
    """Return a cell as a file would have it: None if it is None, "", NaN, or pandas' NA."""
    if isinstance(cell, str) or cell is None:
        return cell or None
    if not (isinstance(cell, (bytes, Mapping)) or hasattr(cell, "__len__")):
        try:
            if cell != cell:  # noqa: PLR0124
                return None
        except TypeError:  # pandas.NA
            return None
    return plain(cell)
