"""``boinc_gahp batch submit`` and ``estimate``."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp import errors
from boinc_gahp.cli.batch import fetching, states, waiting
from boinc_gahp.cli.batch.job_options import (
    add_job_options,
    look_up_jobs,
    read_options,
    submit_options,
)
from boinc_gahp.cli.batch.jsons import batch_json, print_json
from boinc_gahp.cli.batch.opening import as_typed, command, opened
from boinc_gahp.cli.main import FAILED, INTERRUPTED
from boinc_gahp.quantities import LEASE
from boinc_gahp.terminal import words
from boinc_gahp.terminal.live import Work
from boinc_gahp.terminal.output import complain, print_lines
from boinc_gahp.terminal.parsing import Parser, common_words, quantity
from boinc_gahp.text import listed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Sequence

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


def submit_parser(config: str | None = None) -> Parser:
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
    add_job_options(parser, config, json="print the batch as JSON; with --dry-run, the plan")
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


def submit(arguments: list[str], config: str | None) -> int:
    """Send a batch, or show what would be sent."""
    parser = submit_parser(config)
    options = read_options(parser, arguments)
    check_following(parser, options)
    more = submit_options(options)
    return send(arguments, config, options, action="submit", more=more, look_up=look_up_jobs)


def send(
    arguments: list[str],
    config: str | None,
    options: Namespace,
    *,
    action: str,
    more: Options,
    look_up: LookUp,
) -> int:
    """Send a batch, or show what would be sent.

    Args:
        arguments: those of the action.
        config: the value of ``--config`` before it.
        options: what the arguments say; ``app`` is what the name of the batch is made of.
        action: the word before ``arguments``.
        more: what is given for the whole batch.
        look_up: returns the jobs; may change ``options.app`` and ``more``.
    """
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
        typed = partial(as_typed, action, arguments, config)
        jobs = None
        try:
            with Work() as work:
                jobs = look_up(project, options, work, more)
                more["progress"] = StepView(work.show)
                if options.split:
                    batches = project.submit_split(options.app, jobs.jobs, **more)
                else:
                    batches = [project.submit(options.app, jobs.jobs, **more)]
        except KeyboardInterrupt:
            complain(f"interrupted; to continue: {typed(made_up)}")
            return INTERRUPTED
        except errors.GahpError as error:
            if jobs is None or error.says_all:
                raise
            told = _placed(error, jobs, more) if isinstance(error, errors.JobRefused) else error
            complain(told.with_code())
            complain(_how_to_continue(project, typed, made_up, error, split=options.split))
            return 1
        _print_results(project, options, batches)
        _warn_of_templates(project, options)
        return follow(project, options, batches, config)


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
                more_keys = {"existed": batch.existed, "compared": batch.compared}
                print_json({**batch_json(batch), **more_keys})
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
    jobs = words.count(batch.njobs, "job")
    name = words.printable(batch.name)
    app = words.printable(batch.info.app_name)
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
        paths = [words.printable(file.path) for file in batch.published]
        size = words.size(sum(file.nbytes for file in batch.published))
        print(f"Public as long as a job needs them ({size}): {listed(paths, _NAMED)}")
    if options.app_version is not None:
        print(states.version_words(options.app, options.app_version))
    if is_followed(options):
        return
    print("Next:")
    for action in ("wait", "fetch"):
        print(f"  {command(options, action, batch.id)}")


def _placed(error: errors.JobRefused, jobs: CommandLineJobs, more: Options) -> errors.GahpError:
    """Return an error that also names the row of the job that caused it."""
    from boinc_gahp.api.request import job_names

    if jobs.rows is None or error.job_name is None:
        return error
    names = job_names(more["name"] or "", jobs.jobs)
    if error.job_name not in names:
        return error
    # If a name is there twice, the second is reported.
    number = len(names) - 1 - names[::-1].index(error.job_name)
    return type(error)(f"{jobs.place(number)}: {error}", job_name=error.job_name)


# -- after a failure


def _how_to_continue(
    project: Project,
    typed: Callable[[str | None], str],
    made_up: str | None,
    error: errors.GahpError,
    *,
    split: bool,
) -> str:
    """Return the command that continues a submit that failed, and when to give it.

    ``typed`` returns the command for a name; ``made_up`` is the name that the batch got.
    """
    from boinc_gahp.api.submission import drop_begun

    again = typed(made_up)
    if not error.is_final:
        return f"to continue: {again}"
    if made_up is not None and not split:  # of --split, others may be complete
        drop_begun(project.session, made_up)
        again = typed(None)
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


def is_followed(options: Namespace) -> bool:
    """Tell whether the command goes on after the submit."""
    return bool(options.wait or options.fetch)


def check_following(parser: Parser, options: Namespace) -> None:
    """Refuse options that do not go together."""
    if is_followed(options):
        name = "--fetch" if options.fetch else "--wait"
        for other, its_name in ((options.json, "--json"), (options.dry_run, "--dry-run")):
            if other:
                parser.error(f"{its_name} and {name} do not go together")


def follow(
    project: Project, options: Namespace, batches: Sequence[Batch], config: str | None
) -> int:
    """Wait for the batches and fetch their outputs, if this is wanted; return the exit status."""
    if not is_followed(options):
        return 0
    fetches = [_fetch_words(options, batch, of=len(batches)) for batch in batches]
    lines = [command(options, "fetch", *words) for words in fetches]
    status = waiting.wait_for(
        options, project, batches, afterwards=" && ".join(lines) if options.fetch else None
    )
    if options.fetch is None or any(not batch.is_over or batch.gone for batch in batches):
        return status
    statuses = []
    for each in fetches:
        statuses.append(fetching.fetch([*each, *common_words(options)], config))
        if statuses[-1] == INTERRUPTED:
            break
    return _together(statuses)


def _fetch_words(options: Namespace, batch: Batch, *, of: int) -> list[str]:
    """Return the arguments of the fetch of one of ``of`` batches."""
    if options.fetch is None:
        return [str(batch.id)]
    from boinc_gahp.api.outputs.folders import folder_name

    where = Path(options.fetch)
    return [str(batch.id), str(where if of == 1 else where / folder_name(batch.name))]


def _together(statuses: Sequence[int]) -> int:
    """Return one exit status for several fetches: that of the worst, if they differ."""
    for worst in (INTERRUPTED, FAILED):
        if worst in statuses:
            return worst
    if len(set(statuses)) == 1:
        return statuses[0]
    return waiting.SOME_FAILED


_ESTIMATE = """\
Asks the project how long it would take to run jobs. Only the number of jobs and their requirements
are sent; input files are not read. The project computes its answer from the floating-point
operations of the jobs (--fpops-est, or the app's template) and the speed of its volunteers. It is a
rough estimate, which ignores the jobs of other users.
"""


def estimate_parser(config: str | None = None) -> Parser:
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
