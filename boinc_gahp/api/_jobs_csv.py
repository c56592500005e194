"""The file ``jobs.csv`` beside the jobs' folders: a row for each job (:mod:`.records`).

It is written whole, by each fetch. A fetch of some jobs keeps the rows of the others, and so does a
fetch of another batch into the same directory. A user's own file of that name is left alone.

Spreadsheets take a cell that begins with one of ``= + - @`` for a formula, which may send other
cells elsewhere. So a text from the project that begins so gets an apostrophe before it. The words
that were submitted from here are written as they are.
"""

from __future__ import annotations

import csv
import fcntl
import io
import logging
import os
import stat
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING

from boinc_gahp.api._records import ARGS, FIRST, LAST
from boinc_gahp.fetch.temporary import registry
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from boinc_gahp.api._records import Row
    from boinc_gahp.fetch.cancel import CancelScope

__all__ = ["tells_arguments", "write"]

log = logging.getLogger("boinc_gahp.api")

#: The file's name, and the one used if that is a job's, or a file of the user's own.
_NAMES = ("jobs.csv", "jobs.boinc.csv")
#: Keys whose texts come from the project.
_STRANGE = (FIRST, "why", "folder")
_FORMULA = tuple("=+-@")
#: How many characters are written at a time.
_CHUNK = 1 << 18


def write(
    root: Path,
    keys: Sequence[str],
    jobs: Collection[str],
    rows: Iterable[Row],
    scope: CancelScope,
    *,
    known: bool = True,
    order: Iterable[str] = (),
) -> Path | None:
    """Write the file, with the rows of other jobs that it has; return its path.

    Args:
        root: the directory with the folders.
        keys: those of the rows, in order.
        jobs: the names of the rows' jobs.
        rows: as :class:`~boinc_gahp.api._records.RowMaker` makes them.
        scope: is entered before anything is written.
        known: whether the rows tell what was submitted; otherwise the file's own words about that
            are kept.
        order: names of jobs, as their rows are to follow one another; others keep their places.

    Returns:
        None if the user has files of both names.

    Raises:
        OutputError: it cannot be written.
        Exception: whatever a closed scope raises.
    """
    with _alone(root):
        return _write(root, keys, jobs, rows, scope, known=known, order=order)


def tells_arguments(path: Path) -> bool:
    """Return whether a table tells what was submitted: the first job's arguments, or inputs."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        keys, job = next(reader, []), next(reader, [])
    return len(keys) > len((FIRST, ARGS, *LAST)) or any(job[1:2])


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Keep other fetches from changing a directory's file between its reading and its writing."""
    with ExitStack() as stack:
        # Where there are no locks, a row may be missing until the next fetch.
        with suppress(OSError):
            directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, directory)
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield


def _write(
    root: Path,
    keys: Sequence[str],
    jobs: Collection[str],
    rows: Iterable[Row],
    scope: CancelScope,
    *,
    known: bool,
    order: Iterable[str],
) -> Path | None:
    for name in _NAMES:
        old = None if name in jobs else _read(root / name)
        if old is not None:
            every: tuple[Sequence[str], Iterable[Row]] = keys, map(_cells, rows)
            if not (known and {row[FIRST] for row in old[1]} <= set(map(_harmless, jobs))):
                keys, merged = _merged(*every, *old)
                every = keys, _ordered(list(merged), order)
            with registry.file(root / name, scope) as file:
                for text in _lines(*every):
                    file.write(text)
                file.commit()
            return root / name
    log.warning("%s has a file jobs.csv that no fetch has written: it is left alone", root)
    return None


def _read(path: Path) -> tuple[list[str], list[Row]] | None:
    """Return the keys and rows of a file; none if there is no file. None: it is not ours."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        # A spreadsheet may have put a byte order mark before it.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.DictReader(file)
            keys = list(reader.fieldnames or ())
            if keys[:1] != [FIRST] or tuple(keys[-len(LAST) :]) != LAST:
                return None
            return keys, [{key: row[key] for key in keys} for row in reader]
    except FileNotFoundError:
        return [], []
    except (OSError, csv.Error):
        return None


def _merged(
    keys: Sequence[str], fresh: Iterable[Row], old_keys: Sequence[str], old: Sequence[Row]
) -> tuple[Sequence[str], Iterable[Row]]:
    """Return all keys, and the new rows; other rows that were there keep their places.

    What a new row does not tell about its job's submission is taken from the old one.
    """
    # The file of a machine that knows more has the better order.
    longest_first = sorted((keys, old_keys), key=len, reverse=True)
    middle = dict.fromkeys(key for each in longest_first for key in each[: -len(LAST)])
    by_name = {row[FIRST]: row for row in fresh}
    merged: list[Row] = []
    for before in old:
        row = by_name.pop(before[FIRST], None)
        if row is not None:
            row = {**row, **{key: before.get(key) for key in middle if row.get(key) is None}}
        merged.append(row or before)
    return [*middle, *LAST], chain(merged, by_name.values())


def _ordered(rows: list[Row], order: Iterable[str]) -> list[Row]:
    """Return rows with those of the named jobs in this order, in the places that these have."""
    numbers = {_harmless(name): number for number, name in enumerate(order)}
    places = [place for place, row in enumerate(rows) if row[FIRST] in numbers]
    named = sorted((rows[place] for place in places), key=lambda row: numbers[row[FIRST]])
    for place, row in zip(places, named, strict=True):
        rows[place] = row
    return rows


def _cells(row: Row) -> Row:
    """Return a row as it is written."""
    return {**row, **{key: _harmless(row[key] or "") for key in _STRANGE}}


def _harmless(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula."""
    shown = visible(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _lines(keys: Sequence[str], rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the file in pieces: UTF-8, with what cannot be written as an escape."""
    buffer = io.StringIO(newline="")
    usual = csv.DictWriter(buffer, keys, lineterminator="\n")
    # csv does not quote a carriage return by itself.
    quoted = csv.DictWriter(buffer, keys, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in chain([dict(zip(keys, keys, strict=True))], rows):
        returns = any("\r" in cell for cell in row.values() if isinstance(cell, str))
        (quoted if returns else usual).writerow(row)
        if buffer.tell() > _CHUNK:
            yield buffer.getvalue().encode("utf-8", "backslashreplace")
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode("utf-8", "backslashreplace")
