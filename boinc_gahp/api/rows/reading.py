"""Reads jobs from a file with one row per job: CSV with a header, JSON lines, or a list in JSON.

Rows are read one at a time, and errors name the line. Relative paths of input files and templates
start in the directory of the file; for standard input, in the working directory.

boinc_gahp uses the columns ``name``, ``args`` (split as a shell would), ``inputs`` (words
``NAME=FILE``, quoted as for a shell), ``input:NAME`` (a file, see :mod:`.texts`), ``template`` or
``input_template``, ``output_template`` (paths), ``priority``, ``fpops``, ``memory``, ``disk`` and
``delay``, in any order; cells may be empty. All other columns are parameters, for
:class:`.Patterns`. Empty rows are skipped. In JSON each row is an object with the same names;
``args`` may be a list, and ``inputs`` an object by open names.
"""

from __future__ import annotations

import codecs
import csv
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from boinc_gahp.api.rows.jobs import Number, RowJobs, column_of, parameter_of, plain, shown
from boinc_gahp.api.rows.texts import Patterns
from boinc_gahp.errors import BadRequest
from boinc_gahp.submit.types import Job

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import BinaryIO

    from boinc_gahp.submit.types import File, Parameter

Format = Literal["csv", "json", "jsonl"]

#: By extension; in other files the first character decides.
FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}

_DELIMITERS = ",;\t"
#: A number as JSON writes it, so that 007 stays a text.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_rows(
    path: str | os.PathLike[str], form: Format | None = None, patterns: Patterns | None = None
) -> Iterator[tuple[int, Job]]:
    """Yield the jobs of a file, each with the line on which it begins; ``-`` is standard input.

    Args:
        path: the file's path.
        form: None: decided by the name's extension, or else by the first character. A file of JSON
            may have lines or a list, whatever it is called.
        patterns: what the rows' parameters are filled into.

    Raises:
        BadRequest: the file cannot be opened, or a row is wrong: says what was expected and found.
    """
    name = os.fspath(path)
    if name == "-":
        yield from rows_of(sys.stdin.buffer, form, patterns, name="standard input")
        return
    form = form or FORMATS.get(Path(name).suffix.lower())
    try:
        stream = open(name, "rb")  # noqa: PTH123, SIM115  (a name may hold bytes; closed below)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadRequest(
            f"{name}: the file with the rows cannot be opened: {reason}; check its path"
        ) from error
    with stream:
        yield from rows_of(stream, form, patterns, name=name, directory=Path(name).parent)


def rows_of(
    stream: BinaryIO | Iterable[bytes],
    form: Format | None = None,
    patterns: Patterns | None = None,
    *,
    name: str = "rows",
    directory: str | os.PathLike[str] = "",
) -> Iterator[tuple[int, Job]]:
    """Yield the jobs, with their lines, from bytes in UTF-8, with or without a byte order mark.

    Args:
        stream: the lines, with their ends.
        form: None: decided by the first character.
        patterns: what the rows' parameters are filled into.
        name: the file's name, for errors.
        directory: relative paths start here.

    Raises:
        BadRequest: as :func:`read_rows`.
    """
    lines = _lines(stream, name)
    head: list[str] = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    else:
        raise BadRequest(f"{name}: it is empty: expected a header, or JSON objects")
    if form is None:
        form = "json" if head[-1].lstrip()[0] in "{[" else "csv"
    start = Path(directory) if os.fspath(directory) else None
    parameter = _csv_parameter if form == "csv" else parameter_of
    jobs = RowJobs(name, patterns or Patterns(), parameter, start)
    read = _csv_rows if form == "csv" else _json_rows
    for number, row in read(head, lines, jobs):
        yield number, jobs.job(number, row)


def _lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    lines = enumerate(stream, 1)
    while True:
        try:
            number, raw = next(lines)
        except StopIteration:
            return
        except OSError as error:
            raise BadRequest(f"{name}: it cannot be read: {error.strerror}") from error
        if number == 1:
            if raw.startswith(_UTF_16):
                raise BadRequest(f"{name}: it is UTF-16: save it as UTF-8")
            raw = raw.removeprefix(codecs.BOM_UTF8)
        if b"\0" in raw:
            raise BadRequest(
                f"{name}:{number}: it has a NUL byte, as UTF-16 and files that are no text do: "
                "save it as UTF-8"
            )
        try:
            yield raw.decode()
        except UnicodeDecodeError as error:
            raise BadRequest(
                f"{name}:{number}: byte {raw[error.start]:#04x} at column {error.start + 1} is not "
                "UTF-8: save the file as UTF-8"
            ) from error


def _csv_rows(
    head: list[str], lines: Iterator[str], jobs: RowJobs
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield the rows of CSV, each with the line on which it begins.

    They are separated by comma, semicolon or tab, like the header, and quoted as in spreadsheets.

    Args:
        head: the first lines; the last of them is the header, the others are empty.
        lines: the lines after the header.
        jobs: checks the header, and makes the errors.

    Raises:
        BadRequest: the header is wrong, or a row does not fit it.
    """
    reader = csv.reader(chain(head, lines), delimiter=_delimiter(head[-1]), strict=True)
    keys: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            given = next((ours for its, ours in _CSV_ERRORS.items() if its in str(error)), error)
            raise jobs.wrong(line, given) from error
        if cells is None:
            return
        if not any(map(str.strip, cells)):
            continue
        try:
            if keys is None:
                keys = [cell.strip() for cell in cells]
                # Spreadsheets write empty columns beside the table.
                jobs.layout([key for key in keys if key])
                continue
            row = _cells(keys, cells)
        except BadRequest as error:
            raise jobs.wrong(line, error) from error
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


def _csv_parameter(_: str, text: str | None) -> tuple[str | None, Parameter]:
    """Return a parameter as it is written, and as a number if it is written like one."""
    return text, _number(text) if text and _NUMBER.fullmatch(text) else text


def _number(text: str) -> Parameter:
    """Return a number, or the text if Python has no such number."""
    try:
        number = float(text) if set(text) & set(".eE") else int(text)
    except ValueError:  # too many digits
        return text
    return number if math.isfinite(number) else text


def _cells(keys: Sequence[str], cells: Sequence[str]) -> dict[str, str | None]:
    """Return a row without the spaces around its cells; those at the end of inline texts stay."""
    if len(cells) < len(keys) or any(map(str.strip, cells[len(keys) :])):
        raise BadRequest(
            f"expected {len(keys)} cells, as in the header, found {len(cells)}: quote cells "
            "that hold the delimiter"
        )
    found: dict[str, str | None] = {}
    for key, cell in zip(keys, cells, strict=False):
        text = cell.strip()
        if key:
            found[key] = (cell.lstrip() if text.startswith("inline:") else text) or None
        elif text:
            raise BadRequest(
                f"the cell {cell!r} is in a column without a name (pandas writes an index like "
                "this: use to_csv(index=False))"
            )
    return found


def _json_rows(
    head: list[str], lines: Iterator[str], jobs: RowJobs
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows, each with the line on which it begins.

    Args:
        head: the first lines; the last of them is the first that is not empty.
        lines: the lines after these.
        jobs: makes the errors.

    Raises:
        BadRequest: a row is not an object.
    """
    if head[-1].lstrip().startswith("["):
        yield from _listed("".join(chain(head, lines)), jobs)
        return
    for number, line in enumerate(chain(head, lines), 1):
        if line.strip():
            found = _decoded(line, number, jobs, "one JSON object on the line")
            yield number, _mapping(found, number, jobs)


def _listed(text: str, jobs: RowJobs) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a list; decoded twice, because errors tell the line."""
    found = _decoded(text, 1, jobs, "a list of JSON objects")
    place, line, counted = text.index("[") + 1, 1, 0
    for each in found:
        begin = text.index("{", place) if isinstance(each, dict) else place
        line, counted = line + text.count("\n", counted, begin), begin
        yield line, _mapping(each, line, jobs)
        place = _DECODER.raw_decode(text, begin)[1]


def _decoded(text: str, number: int, jobs: RowJobs, expected: str) -> Any:
    """Return the value of a text that begins on this line."""
    try:
        return _DECODER.decode(text.rstrip())
    except json.JSONDecodeError as error:
        found = shown(text[error.pos : error.pos + 100].strip()) or "the end"
        told = f"expected {expected}, found {found}: {error.msg} at column {error.colno}"
        raise jobs.wrong(number + error.lineno - 1, told) from error
    except (BadRequest, ValueError, RecursionError) as error:
        raise jobs.wrong(number, f"expected {expected}: {error}") from error


def _mapping(found: Any, number: int, jobs: RowJobs) -> dict[str, Any]:
    if not isinstance(found, dict):
        told = f"expected a JSON object for each job, found {shown(found)}"
        raise jobs.wrong(number, told)
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


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_float=Number, parse_constant=_no_number)


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
        return [job for _, job in read_rows(rows, patterns=patterns)]
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


def rows_or_jobs(rows: Any) -> tuple[Any, bool]:
    """Return rows, those of an iterator as a list, and whether they are jobs already."""
    is_table = isinstance(rows, (str, os.PathLike, Mapping)) or hasattr(rows, "to_dict")
    if is_table or hasattr(rows, "to_dicts") or not isinstance(rows, Iterable):
        return rows, False
    several = list(rows)
    return several, any(isinstance(each, Job) for each in several)


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
