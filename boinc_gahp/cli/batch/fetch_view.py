"""The output of ``boinc_gahp batch fetch``: its progress, its result, and failed jobs."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from boinc_gahp.terminal import table, words
from boinc_gahp.terminal.live import Work
from boinc_gahp.terminal.output import complain
from boinc_gahp.terminal.table import Column
from boinc_gahp.text import count, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.fetching import Fetched
    from boinc_gahp.api.fetching_batch import Jobs
    from boinc_gahp.api.types import Progress
    from boinc_gahp.errors import GahpError
    from boinc_gahp.fetch.job_end import JobEnd

#: The most errors of single jobs to print one by one.
_TOLD = 10

_COLUMNS = (
    Column("job", minimum=16, middle=True),
    Column("exit", rank=1),
    Column("why", minimum=20),
)


class FetchView:
    """Shows the progress of a fetch on stderr: jobs, bytes, rate; a context manager.

    Args:
        quiet: show nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        from boinc_gahp.api.progress import StepView

        self._work = Work(quiet=quiet)
        self._steps = StepView(self._work.show)

    def __enter__(self) -> FetchView:
        self._work.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._work.__exit__(*raised)

    def progress(self, progress: Progress) -> None:
        """Set the progress."""
        self._steps(progress)

    def asked(self, done: int, total: int) -> None:
        """Set the number of failed jobs that were asked about."""
        self._work.show("asking", done, max(done, total))


def summary(fetched: Fetched, where: Path) -> str:
    """Return the result of a fetch, on one line."""
    parts = [f"{count(fetched.fetched, 'job')} fetched ({words.size(fetched.nbytes)})"]
    if fetched.here:
        parts.append(f"{fetched.here:,} already here")
    if fetched.retried:
        parts.append(f"{fetched.retried:,} of them from retries")
    if fetched.ended_badly:
        parts.append(f"{len(fetched.ended_badly):,} of them ended badly")
    if fetched.errors:
        parts.append(f"{len(fetched.errors):,} could not be fetched")
    parts += nothing_to_fetch(fetched.failed, fetched.unfinished)
    return f"{', '.join(parts)}; in {printable(str(where))}"


def nothing_to_fetch(failed: int, unfinished: int) -> list[str]:
    """Return in words how many jobs have nothing to fetch."""
    parts = []
    if failed:
        parts.append(f"{failed:,} failed")
    if unfinished:
        parts.append(f"{unfinished:,} not finished yet")
    return parts


def print_errors(errors: dict[str, GahpError]) -> None:
    """Print the errors of single jobs on stderr, one per line, but not thousands of them."""
    for name, error in list(errors.items())[:_TOLD]:
        message = printable(str(error))
        text = message if repr(name) in message else f"job {printable(repr(name))}: {message}"
        complain(error.told(text))
    if len(errors) > _TOLD:
        complain(f"… and {len(errors) - _TOLD:,} more jobs that could not be fetched")


def failure_lines(failures: Sequence[JobEnd]) -> Iterator[str]:
    """Yield the lines of a table of failed jobs."""
    rows = (
        (each.name, " ".join(map(str, each.exit_statuses)), (each.why, "red")) for each in failures
    )
    return table.lines(_COLUMNS, rows, sys.stdout)


def failure_summary(failed: int, where: Path) -> str:
    """Return where to find more about the failed jobs."""
    place = printable(str(where))
    return f"{count(failed, 'job')} failed; see failure.txt in the job folders of {place}"


def none_failed(jobs: Jobs) -> str:
    """Return that no job has failed, and how the others are doing."""
    parts = [f"{len(jobs.finished):,} done", *nothing_to_fetch(0, jobs.unfinished)]
    return f"No job has failed: {', '.join(parts)}."


def fetched_json(batch: Batch, fetched: Fetched) -> dict[str, Any]:
    """Return the result of a fetch into a directory or an archive."""
    place: dict[str, Any] = {
        "directory": str(fetched.directory),
        "table": None if fetched.table is None else str(fetched.table),
        "jobs_already_here": fetched.here,
    }
    if fetched.archive is not None:
        place = {"zip": str(fetched.archive), "files": fetched.files}
    return {
        "batch": batch.id,
        "name": batch.name,
        **place,
        "jobs_fetched": fetched.fetched,
        "jobs_failed": fetched.failed,
        "jobs_unfinished": fetched.unfinished,
        "jobs_retried": fetched.retried,
        "jobs_ended_badly": len(fetched.ended_badly),
        "bytes": fetched.nbytes,
    }


def error_json(name: str, error: GahpError) -> dict[str, Any]:
    """Return why one job could not be fetched."""
    return {"job": name, "error": str(error), "code": error.code}


def failure_json(end: JobEnd, project: str, path: Path) -> dict[str, Any]:
    """Return what is known about a failed job, and the file that has it."""
    return {
        "job": end.name,
        "id": end.id,
        "errors": list(end.job.errors),
        "why": end.why,
        "exit_statuses": list(end.exit_statuses),
        "report": replace(end, stderr=None).report(project),
        "stderr": end.stderr or "",
        "file": str(path),
    }
