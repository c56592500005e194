"""``boinc_gahp batch estimate``."""

from __future__ import annotations

import math

from boinc_gahp.cli.batch.job_options import (
    add_job_options,
    look_up_jobs,
    read_options,
    submit_options,
)
from boinc_gahp.cli.batch.jsons import print_json
from boinc_gahp.cli.batch.opening import opened
from boinc_gahp.terminal import words
from boinc_gahp.terminal.live import Work
from boinc_gahp.terminal.parsing import Parser

_DESCRIPTION = """\
Asks the project how long it would take to run jobs. Only the number of jobs and their requirements
are sent; input files are not read. The project computes its answer from the floating-point
operations of the jobs (--fpops-est, or the app's template) and the speed of its volunteers. It is a
rough estimate, which ignores the jobs of other users.
"""


def estimate_parser(config: str | None = None) -> Parser:
    """Return the parser of ``batch estimate``."""
    parser = Parser(
        "batch estimate",
        _DESCRIPTION,
        usage="APP [OPTION ...]",
        examples=(
            "boinc_gahp batch estimate uppercase --input in=data.txt --count 1000 --fpops-est 2e12",
            "boinc_gahp batch estimate uppercase --rows jobs.csv --json",
        ),
    )
    add_job_options(parser, config, json="print the answer as JSON")
    return parser


def estimate(arguments: list[str], config: str | None) -> int:
    """Print the project's estimate of how long the jobs take."""
    options = read_options(estimate_parser(config), arguments)
    with opened(options) as project:
        from boinc_gahp.api.request import new_batch_name

        app = options.app
        with Work() as work:
            more = submit_options(options)
            more["name"] = new_batch_name(app)
            jobs = look_up_jobs(project, options, work, more)
            seconds = project.estimate(app, jobs.jobs, **more)
        count = len(jobs.jobs)
        if options.json:
            print_json({"app": app, "project": project.url, "jobs": count, "seconds": seconds})
        elif math.isfinite(seconds):
            print(
                f"{project.host} estimates that "
                f"{words.count(count, 'job')} of {words.printable(app)} "
                f"{'takes' if count == 1 else 'take'} about {words.span(math.ceil(seconds))}."
            )
        else:
            print(f"{project.host} cannot estimate how long that takes.")
    return 0
