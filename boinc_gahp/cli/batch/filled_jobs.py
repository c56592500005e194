"""Fills the values of rows, files and numbers into the jobs of a command line."""

from __future__ import annotations

import glob
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest
from boinc_gahp.terminal.live import remark
from boinc_gahp.text import count, listed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from boinc_gahp.api.rows.patterns import Patterns
    from boinc_gahp.api.types import Job, LocalFile
    from boinc_gahp.terminal.live import Work

#: What columns of a table set.
_SET = {
    "name": "names",
    "priority": "priorities",
    "fpops": "numbers of operations",
    "memory": "memory",
    "disk": "disk space",
    "delay": "deadlines",
}
#: Rows between two progress messages.
_ROWS = 100


@dataclass
class CommandLineJobs:
    """The jobs that a command line describes.

    Attributes:
        jobs: in order.
        rows: the name of the file with their rows, if there is one.
        lines: each job's line in it.
    """

    jobs: list[Job] = field(default_factory=list)
    rows: str | None = None
    lines: list[int] = field(default_factory=list)

    def place(self, number: int) -> str:
        """Return a job's place, for errors: ``rows.csv:17``; empty for a command line."""
        return f"{self.rows}:{self.lines[number]}" if self.rows else ""


def values_of(number: int, batch_name: str, path: str | None) -> dict[str, str | None]:
    """Return the values of the placeholders for a job that has no row."""
    values: dict[str, str | None] = {"index": str(number), "batch": batch_name}
    if path is not None:
        pure = PurePath(path)
        values.update(path=path, file=path, name=pure.name, stem=pure.stem)
    return values


def names_file(patterns: Patterns) -> bool:
    """Tell whether a placeholder stands for the file of ``--each``, or for a part of its path."""
    used = patterns.used(values_of(0, "", ""))
    return not used.isdisjoint(("path", "file", "name", "stem"))


def filled_jobs(
    options: argparse.Namespace,
    batch_name: str,
    patterns: Patterns,
    work: Work,
    *,
    templates: dict[str, str | None] | None = None,
    of_each: Callable[[], str | None] = lambda: None,
) -> CommandLineJobs:
    """Return the jobs that the options of :func:`.job_options.add_which` tell.

    Args:
        options: the options.
        batch_name: the name of their batch.
        patterns: what a job's values are filled into.
        work: shows the progress.
        templates: the templates of jobs that have none of their own.
        of_each: returns the name of the input that gets the file of ``--each``, or None.

    Raises:
        BadRequest: an option's value is wrong.
        WrongRow: a row is wrong.
    """
    templates = templates or {}
    if options.rows is not None:
        made = _row_jobs(options, patterns, templates, work)
    else:
        made = _other_jobs(options, batch_name, patterns, templates, of_each)
    number = len(made.jobs)
    work.show("checking jobs", 0, number, count(number, "job"))
    return made


def _other_jobs(
    options: argparse.Namespace,
    batch_name: str,
    patterns: Patterns,
    templates: dict[str, str | None],
    of_each: Callable[[], str | None],
) -> CommandLineJobs:
    from boinc_gahp.api.types import Job

    files = None if options.each is None else _matching(options.each)
    name = None if files is None else of_each()
    made = CommandLineJobs()
    for number in range(len(files) if files is not None else options.count or 1):
        path = None if files is None else files[number]
        values = values_of(number, batch_name, path)
        shared = patterns.inputs(values)
        made.jobs.append(
            Job(
                args=patterns.args(values),  # type: ignore[arg-type]
                inputs=shared if path is None or name is None else {**shared, name: _local(path)},
                name=patterns.name(values),
                input_template=templates.get("input_template"),
                output_template=templates.get("output_template"),
            )
        )
    return made


def _row_jobs(
    options: argparse.Namespace,
    patterns: Patterns,
    templates: dict[str, str | None],
    work: Work,
) -> CommandLineJobs:
    from dataclasses import replace

    from boinc_gahp.api.rows.reading import read_rows

    made = CommandLineJobs(rows="standard input" if options.rows == "-" else options.rows)
    for number, row in enumerate(read_rows(options.rows, None, patterns)):
        job = row.job
        if number % _ROWS == 0:
            work.show("reading rows", number, 0)
        for kind, text in templates.items():
            if text is not None and getattr(job, kind) is None:
                job = replace(job, **{kind: text})  # type: ignore[arg-type]
        made.jobs.append(job)
        made.lines.append(row.line)
    if not made.jobs:
        raise BadRequest(f"{made.rows}: it has no rows, so there are no jobs")
    settings = patterns.settings
    if settings:
        columns, sets = ("column", "sets") if len(settings) == 1 else ("columns", "set")
        what = _and([_SET[each] for each in settings.values()])
        remark(
            f"boinc_gahp: {made.rows}: {columns} {_and(list(settings))} {sets} the jobs' {what}; "
            "--as-data COLUMN makes one a parameter only"
        )
    unused = [key for key in made.jobs[0].parameters if key not in settings]
    if unused and patterns.seen.isdisjoint(unused):
        way = f"'--{unused[0]} {{{unused[0]}}}'"
        remark(
            f"boinc_gahp: {made.rows}: no placeholder uses the columns ({listed(unused, 3)}), so "
            + (
                f"they are only recorded; --args {way} would give one to the app"
                if templates
                else f"they are only recorded; {{{unused[0]}}} in the command would be its value"
            )
        )
    return made


def _and(names: Sequence[str]) -> str:
    """Return names as in ``name, delay and memory``."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _matching(patterns: Sequence[str]) -> list[str]:
    """Return the files that the words of ``--each`` match, sorted, each once."""
    found: dict[str, None] = {}
    for pattern in patterns:
        # A file that exists is meant literally, whatever characters its name has.
        matches = [pattern] if _is_file(pattern) else glob.glob(pattern, recursive=True)  # noqa: PTH207
        files = [path for path in matches if _is_file(path)]
        if not files:
            what = "only directories" if matches else "no file"
            raise BadRequest(
                f"--each {pattern!r} matches {what} (looked for from {Path.cwd()}): correct the "
                "pattern"
            )
        found.update(dict.fromkeys(files))
    return sorted(found)


def _is_file(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  (a path may hold bytes)
    except (OSError, ValueError):
        return False


def _local(path: str) -> LocalFile:
    from boinc_gahp.api.types import LocalFile

    return LocalFile(path)
