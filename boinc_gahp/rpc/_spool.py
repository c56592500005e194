"""Keeps jobs that may be too many for memory in a temporary file until the reply has ended."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from boinc_gahp.errors import OutputError
from boinc_gahp.rpc import _results
from boinc_gahp.rpc._replies import RepeatedElements
from boinc_gahp.rpc._table import MOST_JOBS
from boinc_gahp.rpc.types import JobInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Self

R = TypeVar("R")

#: How many bytes stay in memory: some thousands of jobs.
_IN_MEMORY = 1 << 18
#: At least how many jobs are on a line of the file; not many more than a chunk of a reply has.
_A_LINE = 200


class Dropped(RepeatedElements[R]):
    """RepeatedElements whose values are not kept."""

    def extend(self, values: Iterable[R]) -> None:
        """Drop values."""


class SpooledJobs(RepeatedElements[JobInfo]):
    """The jobs of query_batch with details; a context manager that removes the file.

    Args:
        whose: the batch, for error messages.
    """

    def __init__(self, whose: str) -> None:
        super().__init__(("job",), _results.batch_job, MOST_JOBS, _results.JOB_FORM)
        self._whose = whose
        self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115  (closed in __exit__)
            max_size=_IN_MEMORY
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        with suppress(OSError):  # the lack of room was reported
            self._file.close()

    def extend(self, values: Iterable[JobInfo]) -> None:
        """Keep jobs."""
        self.items.extend(values)
        if len(self.items) >= _A_LINE:
            self._write()

    def clear(self) -> None:
        """Drop the jobs of a failed attempt."""
        self.items.clear()
        self._file.seek(0)
        self._file.truncate()

    def __iter__(self) -> Iterator[JobInfo]:
        """Yield the jobs, once."""
        self._write()
        try:
            self._file.seek(0)
        except OSError as error:
            raise self._no_room(error) from error
        for line in self._file:
            yield from map(_job, json.loads(line))

    def _write(self) -> None:
        line = json.dumps(self.items)
        self.items.clear()
        try:
            self._file.write(line.encode() + b"\n")
        except OSError as error:
            raise self._no_room(error) from error

    def _no_room(self, error: OSError) -> OutputError:
        return OutputError(
            f"no room for the jobs of {self._whose} in a temporary file: {error.strerror}; free "
            "some space, or set TMPDIR to another directory"
        )


def _job(fields: list[Any]) -> JobInfo:
    job = JobInfo(*fields)
    return job._replace(errors=tuple(job.errors), exit_statuses=tuple(job.exit_statuses))
