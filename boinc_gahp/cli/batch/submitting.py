"""``boinc_gahp batch submit`` and ``estimate``."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp import errors
from boinc_gahp.cli.batch import fetching, states, waiting
from boinc_gahp.cli.batch.job_options import (
    add_job_options,
    check_jobs,
    look_up_jobs,
    submit_options,
)
from boinc_gahp.cli.batch.jsons import batch_json, picked, print_json
from boinc_gahp.cli.batch.opening import as_typed, command, on_interrupt, opened
from boinc_gahp.cli.main import FAILED
from boinc_gahp.quantities import LEASE
from boinc_gahp.terminal import words
from boinc_gahp.terminal.live import Work
from boinc_gahp.terminal.output import complain, print_lines
from boinc_gahp.terminal.parsing import Parser, common_words, quantity
from boinc_gahp.text import count, listed, printable, size, span

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.project import Project
    from boinc_gahp.api.request import Options
    from boinc_gahp.cli.batch.job_options import CommandLineJobs
    from boinc_gahp.cli.batch.plan_view import LookUp


#: How many published files are named.
_NAMED = 10

_DESCRIPTION = """\
Submits jobs to the project as a batch, and uploads their input files, each file once. You cannot
add jobs to a batch later.

With --wait it waits for the jobs, too, and with --fetch DIR it also fetches their outputs. Ctrl-C
never ends the jobs: a message says what to type to go on.

It is safe to repeat a command that has a --name: it completes the batch, or finds it complete, and
creates no job twice. If a submit fails or is interrupted, a message says how to continue.

--fpops-est, --fpops-bound, --memory, --disk and --delay win over the app's input template.

--dry-run checks everything and sends nothing. It compares the jobs with the app's templates, and
shows which files would be sent, which ones the project has, and whether the request is too large.
"""


def submit_parser() -> Parser:
    """Return the parser of ``batch submit``."""
    parser = Parser(
        "batch submit",
        _DESCRIPTION,
        usage="APP [OPTION ...]",
        statuses=FOLLOWED,
        examples=(
            "boinc_gahp batch submit uppercase --input in=data.txt",
            "boinc_gahp batch submit uppercase --input in=data.txt --args '--seed {index}' "
            "--count 100",
            "boinc_gahp batch submit uppercase --each 'data/*.txt' --name first --dry-run",
            "boinc_gahp batch submit uppercase --rows params.csv --args '--seed {seed}' "
            "--input 'in={path}' --name sweep --delay 2d",
            "boinc_gahp batch submit uppercase --each 'data/*.txt' --fetch results",
        ),
    )
    add_job_options(parser, json="print the batch as JSON; with --dry-run, the plan")
    add_sending(parser, "APP")
    return parser


def add_sending(parser: Parser, named_after: str) -> None:
    """Add the options about the batch that is sent, and what is done then."""
    name = f"name of the batch (default: {named_after}, the time, four letters)"
    lease = (
        "how long the project keeps the batch if nobody waits for it, fetches from it or extends "
        "it: 12h, 7d, 2w (default: long enough for the deadlines and retries of its jobs, at least "
        "[jobs] batch_lease, 14 days)"
    )
    parser.takes({"--name NAME": name}).takes({"--lease SPAN": lease}, type=quantity(LEASE))
    parser.takes(
        {
            "--split": "make several batches, BATCH-1, BATCH-2, ..., if the jobs do not fit into "
            "one request",
            "--wait": 'wait until all jobs are over, and show the progress, like "batch wait"',
            "--fetch DIR": 'wait, and then fetch the outputs into DIR, like "batch fetch"; several '
            "batches of --split go into directories there with their names",
            "--dry-run": "show what would be sent, and what is wrong; the exit status is 1 if "
            "anything is wrong",
        }
    )


def submit(options: Namespace) -> int:
    """Send a batch, or show what would be sent."""
    check_jobs(options)
    return send(options, submit_options(options), look_up_jobs)


def send(options: Namespace, more: Options, look_up: LookUp) -> int:
    """Send a batch, or show what would be sent.

    Args:
        options: those of the command; ``app`` is what the name of the batch is made of.
        more: what is given for the whole batch.
        look_up: returns the jobs; may change ``options.app`` and ``more``.
    """
    options.wait = options.wait or options.fetch is not None
    for other, its_name in ((options.json, "--json"), (options.dry_run, "--dry-run")):
        if other and options.wait:
            name = "--fetch" if options.fetch else "--wait"
            options.parser.error(f"{its_name} and {name} do not go together")
    with opened(options) as project:
        from boinc_gahp.api.progress import StepView
        from boinc_gahp.api.request import new_batch_name

        more["lease"] = options.lease
        # Whatever happens from here on, this name finds what was begun.
        more["name"] = new_batch_name(options.app) if options.name is None else options.name
        if options.dry_run:
            from boinc_gahp.cli.batch.plan_view import dry_run

            status = dry_run(project, options, more, look_up)
            _warn_of_templates(project, options)
            return status
        made_up = more["name"] if options.name is None else None
        jobs = None
        try:
            again = as_typed(options, made_up)
            with on_interrupt(f"interrupted; to continue: {again}"), Work() as work:
                jobs = look_up(project, options, work, more)
                more["progress"] = StepView(work.show)
                if options.split:
                    batches = project.submit_split(options.app, jobs.jobs, **more)
                else:
                    batches = [project.submit(options.app, jobs.jobs, **more)]
        except errors.GahpError as error:
            if jobs is None or error.says_all:
                raise
            told = _placed(error, jobs, more) if isinstance(error, errors.JobRefused) else error
            complain(told.with_code())
            complain(_how_to_continue(project, options, made_up, error))
            return 1
        _print_results(project, options, batches)
        _warn_of_templates(project, options)
        return follow(project, options, batches)


def _warn_of_templates(project: Project, options: Namespace) -> None:
    """Say if the project may delete files of the jobs too early, as ``check --app`` says it."""
    from boinc_gahp.templates.rules import faults
    from boinc_gahp.templates.types import TemplateError

    own = [getattr(options, f"{kind}_template", None) for kind in ("input", "output")]
    if all(own):
        return
    try:
        used = project.session.context.cache.templates(options.app)
    except (errors.GahpError, TemplateError):
        return  # jobs in containers bring their own
    for problem in (
        *(faults(used.input) if own[0] is None else ()),
        *(faults(used.output) if own[1] is None else ()),
    ):
        if problem.code.startswith("no-delete-"):
            complain(f"app {options.app}: {problem.text}; ask its admin to change it")


def _print_results(project: Project, options: Namespace, batches: Sequence[Batch]) -> None:
    try:
        for batch in batches:
            if options.json:
                print_json({**batch_json(batch), **picked(batch, "existed", "compared")})
            else:
                _print_result(project, options, batch)
        sys.stdout.flush()
    except OSError:
        # Without this message it would look as if nothing had been sent.
        for batch in batches:
            complain(f"batch {batch.id} ({batch.name}) is submitted")
        raise


def _newer_version(project: Project, batch: Batch) -> Iterator[str]:
    """Yield a warning if the app has changed since a batch was made, as far as a project tells."""
    from boinc_gahp.cli.apps import listed_apps, version_number

    app = None
    with suppress(errors.GahpError):
        app = listed_apps(project.rpc)[0].get(batch.info.app_name)
    newest = max(app.versions if app else (), key=lambda each: each.version_num, default=None)
    if newest is not None and newest.date_unix > batch.create_time:
        yield (
            f"Its app has had another version, {version_number(newest.version_num)}, since then: "
            "what is done was computed with an older one. To compute it again, give the jobs "
            "another batch: --name"
        )


def _print_result(project: Project, options: Namespace, batch: Batch) -> None:
    jobs = count(batch.njobs, "job")
    name = printable(batch.name)
    app = printable(batch.info.app_name)
    print(f"Batch {batch.id} {name!r}: {jobs} of {app} on {project.host}.")
    if batch.existed:
        if batch.compared:
            print("It was there already, with these jobs: nothing was sent.")
        else:
            # A user who has changed files or arguments would wait for new outputs in vain.
            print("It was there already, with jobs of these names: nothing was sent.")
            print(states.NOT_COMPARED)
        print_lines(_newer_version(project, batch))
    if batch.expire_time:
        end = words.at(batch.expire_time)[:-3]
        left, _ = states.lease_words(batch)
        print(f"The project keeps it until {end} ({left}); wait and fetch extend this.")
    made = getattr(options, "made", None)  # of batch run
    if made is not None and not batch.existed:
        print(f"{made.sent_along}.")
        options.made = None  # told once, also of several batches
    if batch.published:
        paths = [printable(file.path) for file in batch.published]
        nbytes = sum(file.nbytes for file in batch.published)
        print(f"Public as long as a job needs them ({size(nbytes)}): {listed(paths, _NAMED)}")
    if options.app_version is not None:
        print(states.version_words(options.app, options.app_version))
    if not options.wait:
        print("Next:")
        for action in ("wait", "fetch"):
            print(f"  {command(options, action, batch.id)}")


def _placed(error: errors.JobRefused, jobs: CommandLineJobs, more: Options) -> errors.GahpError:
    """Return an error that also names the row of the job that caused it."""
    place = jobs.places(more["name"] or "").get(error.job_name or "")
    return type(error)(f"{place}: {error}", job_name=error.job_name) if place else error


# -- after a failure


def _how_to_continue(
    project: Project, options: Namespace, made_up: str | None, error: errors.GahpError
) -> str:
    """Return the command that continues a submit that failed, and when to give it.

    ``made_up`` is the name that the batch got, if the command has none.
    """
    from boinc_gahp.api.submission import drop_begun

    again = as_typed(options, made_up)
    if not error.is_final:
        return f"to continue: {again}"
    if made_up is not None and not options.split:  # of --split, others may be complete
        drop_begun(project.session, made_up)
        again = as_typed(options)
    elif error.spoils_batch:
        # The project keeps the name of a batch that was retired.
        return f"to continue, once that is fixed, with another --name: {again}"
    return f"to continue, once that is fixed: {again}"


#: The exit statuses of a submit that waits.
FOLLOWED = {
    FAILED: "an error; with --fetch also: something could not be fetched; with --wait: the project "
    "does not tell how programs ended",
    waiting.SOME_FAILED: "with --wait or --fetch: some jobs failed, or their programs ended badly",
    waiting.ALL_FAILED: "with --wait or --fetch: all jobs failed or ended badly, or the batch "
    "was aborted",
}


def follow(project: Project, options: Namespace, batches: Sequence[Batch]) -> int:
    """Wait for the batches and fetch their outputs, if this is wanted; return the exit status."""
    if not options.wait:
        return 0
    if options.fetch is None:
        return waiting.wait_for(options, project, batches)
    from boinc_gahp.api.outputs.folders import folder_name

    where, is_single = Path(options.fetch), len(batches) == 1
    fetches = [
        [str(batch.id), str(where if is_single else where / folder_name(batch.name))]
        for batch in batches
    ]
    afterwards = " && ".join(command(options, "fetch", *words) for words in fetches)
    status = waiting.wait_for(options, project, batches, afterwards=afterwards)
    if any(not batch.is_over or batch.gone for batch in batches):
        return status
    statuses = []
    for each in fetches:
        words = [*each, *common_words(options.project, options.config)]
        statuses.append(fetching.fetch(fetching.fetch_parser().read(words)))
    if FAILED in statuses:
        return FAILED
    return statuses[0] if len(set(statuses)) == 1 else waiting.SOME_FAILED


_ESTIMATE = """\
Asks the project how long it would take to run jobs. Only the number of jobs and their requirements
are sent; input files are not read. The project computes its answer from the floating-point
operations of the jobs (--fpops-est, or the app's template) and the speed of its volunteers. It is a
rough estimate, which ignores the jobs of other users.
"""


def estimate_parser() -> Parser:
    """Return the parser of ``batch estimate``."""
    parser = Parser(
        "batch estimate",
        _ESTIMATE,
        usage="APP [OPTION ...]",
        examples=(
            "boinc_gahp batch estimate uppercase --input in=data.txt --count 1000 --fpops-est 2e12",
            "boinc_gahp batch estimate uppercase --rows jobs.csv --json",
        ),
    )
    add_job_options(parser, json="print the answer as JSON")
    return parser


def estimate(options: Namespace) -> int:
    """Print the project's estimate of how long the jobs take."""
    check_jobs(options)
    with opened(options) as project:
        from boinc_gahp.api.request import new_batch_name

        with Work() as work:
            more = submit_options(options)
            more["name"] = new_batch_name(options.app)
            jobs = look_up_jobs(project, options, work, more)
            seconds = project.estimate(options.app, jobs.jobs, **more)
        number = len(jobs.jobs)
        if options.json:
            known = {"app": options.app, "project": project.url}
            print_json({**known, "jobs": number, "seconds": seconds})
        elif math.isfinite(seconds):
            print(
                f"{project.host} estimates that "
                f"{count(number, 'job')} of {printable(options.app)} "
                f"{'takes' if number == 1 else 'take'} about {span(math.ceil(seconds))}."
            )
        else:
            print(f"{project.host} cannot estimate how long that takes.")
    return 0
