"""What is known of a batch's jobs in one flat row for each: for DataFrames, and for ``jobs.csv``.

What was submitted comes from the manifest on this machine. States, failures and CPU times come from
the project, all in one reply. Exit statuses and elapsed times of jobs that are done come from the
notes in their folders, since the project tells them job by job, together with stderr. No RPC tells
which computer ran a job.
"""

from __future__ import annotations

import csv
import fcntl
import io
import logging
import os
import shlex
import stat
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from boinc_gahp.api.family import note_of
from boinc_gahp.api.outputs.folders import folder_name
from boinc_gahp.api.outputs.logs import ends_of
from boinc_gahp.fetch.temporary import registry
from boinc_gahp.states import JobState
from boinc_gahp.text import shorten, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from boinc_gahp.api.family import RetryChain
    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.manifest import Manifest
    from boinc_gahp.api.outputs.folders import FetchRecord
    from boinc_gahp.fetch.job_end import JobEnd
    from boinc_gahp.rpc.types import JobInfo


#: The key before the parameters, and those after them; between are the inputs'.
FIRST = "job"
ARGS = "args"
LAST = ("state", "exit_status", "cpu_time", "elapsed_time", "why", "attempts", "folder")
_INPUT = "input:"
_MD5 = "md5:"
#: Before the name of a parameter that would be one of our keys.
_PARAMETER = "parameter:"
#: How many characters of an inline text a row has: the text may have megabytes.
_LONGEST = 100

#: A row: keys of :attr:`RowMaker.keys`.
Row = dict[str, Any]


def parameter_key(name: str) -> str:
    """Return a parameter's key in a row: its own name, unless a row has that key for itself."""
    ours = name in {FIRST, ARGS, *LAST} or name.startswith((_INPUT, _MD5, _PARAMETER))
    return _PARAMETER + name if ours else name


class RowMaker:
    """Makes the rows of a batch's jobs, all with the same keys.

    Args:
        manifest: what was submitted; None: this machine does not know, so ``args`` are None, and
            there are no keys for parameters and inputs.
        ends: how the jobs that failed ended, by their ids.

    Attributes:
        keys: the keys in their order: ``job``, the parameters, ``args``, ``input:NAME`` and
            ``md5:NAME`` of each input, ``state``, ``exit_status``, ``cpu_time``, ``elapsed_time``,
            ``why``, ``attempts`` and ``folder``.
    """

    def __init__(self, manifest: Manifest | None, ends: Mapping[int, JobEnd]) -> None:
        self._manifest = manifest
        self._ends = ends
        parameters, inputs = ((), ()) if manifest is None else manifest.columns()
        of_inputs = [key for name in inputs for key in (_INPUT + name, _MD5 + name)]
        self.keys = (FIRST, *map(parameter_key, parameters), ARGS, *of_inputs, *LAST)
        self._empty: Row = dict.fromkeys(self.keys)

    def row(
        self,
        job: JobInfo,
        note: FetchRecord | None = None,
        folder: str | None = None,
        *,
        trouble: str = "",
        attempts: int = 1,
    ) -> Row:
        """Return a job's row; what is not known is None.

        Args:
            job: the job, as it counts (:func:`~boinc_gahp.api.family.with_retries`).
            note: that in the folder of its outputs; None: it was not fetched.
            folder: the folder of its outputs; None: it has none.
            trouble: why its outputs could not be fetched.
            attempts: how often it was sent.
        """
        row = {**self._empty, FIRST: job.name, "state": job.state.value}
        row.update(self._submitted(job.name))
        row.update(cpu_time=job.cpu_time, attempts=attempts, folder=folder)
        if job.state is JobState.FAILED:
            end = self._ends[job.id]
            row.update(exit_status=end.exit_status, why=end.why)
        elif trouble:
            row["why"] = trouble
        if note is not None:
            if note.result is not None:
                row["exit_status"] = note.result.exit_status
                row["cpu_time"] = note.result.cpu_time
                row["elapsed_time"] = note.result.elapsed_time
            if note.exit_status is not None or note.failure:
                row["exit_status"] = note.exit_status
            if note.failure:
                row.update(state=JobState.FAILED.value, why=note.failure)
        return row

    def _submitted(self, name: str) -> Iterator[tuple[str, Any]]:
        if self._manifest is None or name not in self._manifest.jobs:
            return
        sent = self._manifest.job(name)
        for parameter, value in sent.parameters.items():
            yield parameter_key(parameter), value
        yield ARGS, shlex.join(sent.words)
        for open_name, item in () if sent.program else sent.inputs.items():
            source = item.source
            if source.startswith("inline:"):
                source = shorten(source, _LONGEST)
            yield _INPUT + open_name, source or None
            yield _MD5 + open_name, item.md5


def records(batch: KnownBatch, found: Sequence[JobInfo], family: RetryChain) -> list[Row]:
    """Return rows of a batch's jobs, as with_retries lists them; see ``Batch.to_records``."""
    root = batch.directory
    maker = RowMaker(batch.manifest, ends_of(batch, found))
    counts = family.counts
    return [
        maker.row(job, *fetched_in(batch, job, root), attempts=counts.get(job.name, 1))
        for job in found
    ]


def fetched_in(
    batch: KnownBatch, job: JobInfo, root: Path | None
) -> tuple[FetchRecord | None, str | None]:
    """Return the note in a job's folder, and the folder; None: there is none.

    Args:
        batch: the batch.
        job: the job.
        root: where the batch was fetched; None: nowhere.
    """
    if root is None:
        return None, None
    folder = root / folder_name(job.name)
    note = note_of(batch, job, root)
    if note is None:
        return None, str(folder) if job.state.is_over and folder.is_dir() else None
    # Of a retry and the job that it repeats, the outputs of either count.
    is_older = note.job_id == job.id and note.instance_id != job.canonical_instance_id
    return None if is_older else note, str(folder)


log = logging.getLogger("boinc_gahp.api")

#: The file's name, and the one used if that is a job's, or a file of the user's own.
_NAMES = ("jobs.csv", "jobs.boinc.csv")
#: Keys whose texts come from the project.
_STRANGE = (FIRST, "why", "folder")
_FORMULA = tuple("=+-@")
#: How many characters are written at a time.
_CHUNK = 1 << 18


def write_table(
    root: Path,
    keys: Sequence[str],
    jobs: Collection[str],
    rows: Iterable[Row],
    *,
    known: bool = True,
    order: Iterable[str] = (),
) -> Path | None:
    """Write the file, with the rows of other jobs that it has; return its path.

    Args:
        root: the directory with the folders.
        keys: those of the rows, in order.
        jobs: the names of the rows' jobs.
        rows: as :class:`~boinc_gahp.api.outputs.records.RowMaker` makes them.
        known: whether the rows tell what was submitted; otherwise the file's own words about that
            are kept.
        order: names of jobs, as their rows are to follow one another; others keep their places.

    Returns:
        None if the user has files of both names.

    Raises:
        OutputError: it cannot be written.
    """
    with _alone(root):
        for name in _NAMES:
            old = None if name in jobs else _read(root / name)
            if old is not None:
                every: tuple[Sequence[str], Iterable[Row]] = keys, map(_cells, rows)
                if not (known and {row[FIRST] for row in old[1]} <= set(map(_harmless, jobs))):
                    keys, merged = _merged(*every, *old)
                    every = keys, _ordered(list(merged), order)
                with registry.file(root / name) as file:
                    for text in _lines(*every):
                        file.write(text)
                    file.commit()
                return root / name
    log.warning("%s has a file jobs.csv that no fetch has written: it is left alone", root)
    return None


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


def _read(path: Path) -> tuple[list[str], list[Row]] | None:
    """Return the keys and rows of a file, both empty without a file; None: it is not ours."""
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
