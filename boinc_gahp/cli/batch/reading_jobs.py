"""Reads the jobs that a command line describes, and shows the progress of work on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.cli.batch.job_options import read_jobs
from boinc_gahp.terminal import words

if TYPE_CHECKING:
    from argparse import Namespace

    from boinc_gahp.api.project import Project
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.types import Progress
    from boinc_gahp.cli.batch.filled_jobs import CommandLineJobs
    from boinc_gahp.terminal.live import Work


def look_up_jobs(
    project: Project, options: Namespace, work: Work, more: Options
) -> CommandLineJobs:
    """Return the jobs that the options describe, for a batch; shows the progress.

    Args:
        project: the project.
        options: the options.
        work: shows the progress.
        more: what is given for the whole batch; its name is set.
    """
    jobs = read_jobs(
        options,
        more["name"] or "",
        lambda: [file.open_name for file in project.app(options.app).inputs],
        lambda number: work.show("reading rows", number, 0),
    )
    count = len(jobs.jobs)
    work.show("checking jobs", 0, count, words.count(count, "job"))
    return jobs


def show_progress(work: Work, progress: Progress) -> None:
    """Show progress."""
    from boinc_gahp.api.progress import StepView

    StepView(work.show)(progress)
