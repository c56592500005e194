"""``boinc_gahp batch fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.batch.arguments import add_batch, add_common, add_job, whole_number
from boinc_gahp.cli.batch.opening import opened, words_as_typed
from boinc_gahp.cli.main import INTERRUPTED
from boinc_gahp.terminal import words
from boinc_gahp.terminal.output import command_line, complain
from boinc_gahp.terminal.parsing import Parser, not_empty

if TYPE_CHECKING:
    from argparse import Namespace

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.fetching import Fetched

_DESCRIPTION = """\
Fetches the outputs of a batch's finished jobs. DIR gets a folder per job, named after the job, with
the outputs under the names that the app uses, and the job's stderr as stderr.txt. Without DIR the
folders go into ./BATCH, a directory with the name of the batch.

If fetch is interrupted, run it again. It then fetches what is missing: jobs that have finished
since, and files that were deleted here. A file gets its name only when it is complete. A hidden
file in each folder lists the files that were fetched; other files in the folder are left alone.

DIR/jobs.csv gets a row for each job: its parameters, arguments and inputs (on the machine that
submitted it), state, exit status, CPU and elapsed time, and why it failed.

Files from the project are never hidden: a dot at the beginning of a name is written as %2E.

Of a job of "batch run" DIR also gets the program's stdout as stdout.txt. If the program ended with
a status other than 0, its job counts as failed from now on; its outputs are fetched all the same.

A job that was submitted with its own output template may have more outputs than the app's template
lists. The project does not tell their names; they are called output_1, output_2 and so on.

With --zip everything goes into one archive, which is written from scratch each time. With --failed
no outputs are fetched; instead, the command shows what the project knows about the failed jobs.
"""

_STATUSES = {
    0: "all jobs are done, and all outputs have been fetched",
    1: "something could not be fetched; run it again, unless stderr says that it is gone",
    3: "some jobs failed; the outputs of all others have been fetched",
    4: "all jobs failed",
    5: "some jobs are not finished; the outputs of those that are done have been fetched",
}


def fetch_parser(config: str | None = None) -> Parser:
    """Return the parser of ``batch fetch``."""
    parser = Parser(
        "batch fetch",
        _DESCRIPTION,
        examples=(
            "boinc_gahp batch fetch sweep results",
            "boinc_gahp batch fetch 12 --job sweep_007 --job sweep_008",
            "boinc_gahp batch fetch 12 --zip sweep.zip --no-stderr",
            "boinc_gahp batch fetch 12 --failed",
        ),
        statuses=_STATUSES,
    )
    add_batch(parser)
    parser.completes(
        parser.add_argument(
            "directory",
            nargs="?",
            metavar="DIR",
            type=not_empty,
            help="where the outputs go; created if missing (default: a directory here with the "
            "batch's name)",
        ),
        "directory",
    )
    add_job(parser)
    parser.completes(
        parser.add_argument(
            "--zip", metavar="FILE", type=not_empty, help="put everything into this zip archive"
        ),
        "file",
    )
    parser.add_argument(
        "--failed",
        action="store_true",
        help="instead of outputs, fetch why jobs failed: show it, and write it to "
        "failure.txt in each folder",
    )
    parser.add_argument(
        "--threads",
        type=whole_number,
        default=4,
        metavar="N",
        help="fetch N jobs at a time (default: 4)",
    )
    parser.add_argument(
        "--no-stderr", action="store_true", help="do not fetch stderr; this saves time"
    )
    parser.add_argument("--again", action="store_true", help="fetch everything again")
    add_common(parser, config, json="print JSON: what was fetched, or with --failed what failed")
    return parser


def fetch(arguments: list[str], config: str | None) -> int:
    """Fetch; return the exit status."""
    parser = fetch_parser(config)
    options = parser.read(arguments)
    if options.zip is not None:
        for other, name in ((options.directory, "DIR"), (options.failed, "--failed")):
            if other:
                parser.error(f"--zip and {name} do not go together")
        if options.again:
            parser.error("--again is for folders: an archive is written from scratch each time")
    try:
        with opened(options) as project:
            batch = project.batch(options.batch)
            if options.failed:
                return _failed(batch, options)
            return _outputs(batch, options)
    except KeyboardInterrupt:
        again = command_line(words_as_typed("fetch", arguments, config))
        rest = (
            "run it again" if options.zip or options.failed else "the same command fetches the rest"
        )
        complain(f"interrupted; {rest}: {again}")
        return INTERRUPTED


def _outputs(batch: Batch, options: Namespace) -> int:
    from boinc_gahp.cli.batch import fetch_view
    from boinc_gahp.cli.batch.jsons import print_json
    from boinc_gahp.cli.batch.reasons_view import failed_in, reasons_json

    how: dict[str, Any] = {
        "jobs": options.job,
        "threads": options.threads,
        "stderr": not options.no_stderr,
    }
    where = Path(options.zip) if options.zip is not None else _directory(batch, options)
    with fetch_view.FetchView(quiet=options.json) as view:
        if options.zip is not None:
            fetched = batch.fetch_zip(where, progress=view.progress, **how)
        else:
            fetched = batch.fetch(where, progress=view.progress, again=options.again, **how)
    fetch_view.print_errors(fetched.errors)
    if options.json:
        errors = (fetch_view.error_json(*each) for each in fetched.errors.items())
        more = reasons_json(failed_in(batch, options.job))
        print_json(fetch_view.fetched_json(batch, fetched), errors=errors, **more)
    else:
        print(fetch_view.summary(fetched, where))
        if fetched.archive is not None and not fetched.files:
            print("The archive has only jobs.csv: there are no outputs.")
        _say_more(batch, options, fetched)
    return _status(batch, fetched)


def _failed(batch: Batch, options: Namespace) -> int:
    from boinc_gahp.api.family import standing_of
    from boinc_gahp.api.fetching_batch import jobs_of
    from boinc_gahp.api.logs import logs_of, save_failure
    from boinc_gahp.cli.batch import fetch_view, states
    from boinc_gahp.cli.batch.jsons import print_json
    from boinc_gahp.cli.batch.reasons_view import retry_lines

    where = _directory(batch, options)
    selected = jobs_of(batch, options.job)
    standing = standing_of(batch, options.job)
    failed = [job.id for job in standing.failed]
    found = []
    with fetch_view.FetchView(quiet=options.json) as view:
        for end in logs_of(batch, jobs=failed) if failed else ():
            found.append((end, save_failure(end, batch.project.url, where)))
            view.asked(len(found), selected.failed)
    if options.json:
        print_json(
            {
                "batch": batch.id,
                "name": batch.name,
                "jobs_done": len(selected.finished),
                "jobs_failed": len(found),
                "jobs_unfinished": selected.unfinished,
            },
            failures=(fetch_view.failure_json(end, batch.project.url, path) for end, path in found),
        )
    elif found:
        for line in fetch_view.failure_lines([end for end, _ in found]):
            print(line)
        print()
        print(fetch_view.failure_summary(len(found), where))
        if batch.lease_is_over:
            print(states.lease_warning(batch, words.now()))
    else:
        print(fetch_view.none_failed(selected))
    if not options.json:
        for line in retry_lines(options, standing):
            print(line)
    return _exit_status(batch, len(selected.finished), len(found), selected.unfinished)


def _directory(batch: Batch, options: Namespace) -> Path:
    from boinc_gahp.api.folders import folder_name

    return Path(options.directory or folder_name(batch.name))


def _say_more(batch: Batch, options: Namespace, fetched: Fetched) -> None:
    """Print what to do about jobs whose outputs were not fetched."""
    from boinc_gahp.cli.batch import states
    from boinc_gahp.cli.batch.reasons_view import reason_lines

    if batch.lease_is_over:
        print(states.lease_warning(batch, words.now()))
    for line in reason_lines(options, batch, options.job):
        print(line)
    if fetched.errors:
        print("Repeat the command to fetch what is missing, unless the project has deleted it.")
    if fetched.unfinished or not batch.is_over:
        print(
            f"The batch is {states.batch_words(batch)[0]}: run this again when more jobs are done."
        )
    if batch.njobs and batch.manifest is None:
        print("jobs.csv lacks arguments and parameters: they are not known on this machine.")


def _status(batch: Batch, fetched: Fetched) -> int:
    if fetched.errors:
        return 1
    bad = len(fetched.ended_badly)
    done = fetched.fetched + fetched.here - bad
    return _exit_status(batch, done, fetched.failed + bad, fetched.unfinished)


def _exit_status(batch: Batch, done: int, failed: int, unfinished: int) -> int:
    """Return the exit status for these numbers of jobs: done, failed, and neither."""
    # A batch that is being made has no jobs yet.
    if unfinished or not (done or failed or batch.is_over):
        return 5
    if failed:
        return 3 if done else 4
    return 0
