"""``boinc_gahp batch fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.batch import states
from boinc_gahp.cli.batch.jsons import error_json, print_json
from boinc_gahp.cli.batch.opening import BATCH, JOBS, as_typed, on_interrupt, opened
from boinc_gahp.terminal.live import Work
from boinc_gahp.terminal.output import complain, print_lines
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.text import count, printable, size

if TYPE_CHECKING:
    from argparse import Namespace

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.outputs.fetching import Fetched
    from boinc_gahp.errors import GahpError

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

For "batch run", the program's stdout is fetched, too, as stdout.txt. If the program ended with a
status other than 0, its job counts as failed from now on; its outputs are fetched all the same.

A job that was submitted with its own output template may have more outputs than the app's template
lists. The project does not tell their names; they are called output_1, output_2 and so on.

With --zip everything goes into one archive, which is written from scratch each time.
"""

_STATUSES = {
    0: "all jobs are done, and all outputs have been fetched",
    1: "something could not be fetched; run it again, unless stderr says that it is gone",
    3: "some jobs failed; the outputs of all others have been fetched",
    4: "all jobs failed",
    5: "some jobs are not finished; the outputs of those that are done have been fetched",
}


#: The most errors of single jobs to print one by one.
_TOLD = 10


def fetch_parser() -> Parser:
    """Return the parser of ``batch fetch``."""
    parser = Parser(
        "batch fetch",
        _DESCRIPTION,
        examples=(
            "boinc_gahp batch fetch sweep results",
            "boinc_gahp batch fetch 12 --job sweep_007 --job sweep_008",
            "boinc_gahp batch fetch 12 --zip sweep.zip --no-stderr",
        ),
        statuses=_STATUSES,
    )
    where = {
        "[DIR]": "where the outputs go; created if missing (default: a directory here with the "
        "batch's name)"
    }
    how = {
        "--zip FILE": "put everything into this zip archive",
        "--no-stderr": "do not fetch stderr; this saves time",
    }
    parser.takes(BATCH).takes(where, dest="directory").takes(JOBS | how)
    return parser.with_common(project=True, json="print JSON: what was fetched")


def fetch(options: Namespace) -> int:
    """Fetch; return the exit status."""
    if options.zip is not None and options.directory:
        options.parser.error("--zip and DIR do not go together")
    rest = "run it again" if options.zip else "the same command fetches the rest"
    with on_interrupt(f"interrupted; {rest}: {as_typed(options)}"), opened(options) as project:
        return _outputs(project.batch(options.batch), options)


def _outputs(batch: Batch, options: Namespace) -> int:
    from boinc_gahp.api.outputs.folders import folder_name
    from boinc_gahp.api.progress import StepView

    where = Path(options.zip or options.directory or folder_name(batch.name))
    bring = batch.fetch if options.zip is None else batch.fetch_zip
    with Work(quiet=options.json) as work:
        how = {"jobs": options.job, "stderr": not options.no_stderr}
        fetched = bring(where, progress=StepView(work.show), **how)
    _print_errors(fetched.errors)
    if options.json:
        errors = ({"job": name, **error_json(error)} for name, error in fetched.errors.items())
        more = states.reasons_json(batch, options.job)
        print_json(_json(batch, fetched), errors=errors, **more)
    else:
        print(_summary(fetched, where))
        if fetched.archive is not None and not fetched.files:
            print("The archive has only jobs.csv: there are no outputs.")
        _say_more(batch, options, fetched)
    return _status(batch, fetched)


def _summary(fetched: Fetched, where: Path) -> str:
    """Return the result of a fetch, on one line."""
    parts = [f"{count(fetched.fetched, 'job')} fetched ({size(fetched.nbytes)})"]
    others = {
        "already here": fetched.here,
        "of them from retries": fetched.retried,
        "of them ended badly": len(fetched.failed_programs),
        "could not be fetched": len(fetched.errors),
        "failed": fetched.failed,
        "not finished yet": fetched.unfinished,
    }
    parts += [f"{number:,} {words}" for words, number in others.items() if number]
    return f"{', '.join(parts)}; in {printable(str(where))}"


def _print_errors(errors: dict[str, GahpError]) -> None:
    """Print the errors of single jobs on stderr, one per line, but not thousands of them."""
    for name, error in list(errors.items())[:_TOLD]:
        message = printable(str(error))
        text = message if repr(name) in message else f"job {printable(repr(name))}: {message}"
        complain(error.with_code(text))
    if len(errors) > _TOLD:
        complain(f"… and {len(errors) - _TOLD:,} more jobs that could not be fetched")


def _say_more(batch: Batch, options: Namespace, fetched: Fetched) -> None:
    """Print what to do about jobs whose outputs were not fetched."""
    from boinc_gahp.api.outputs.fetching import lacks_arguments

    if batch.lease_is_over:
        print(states.lease_warning(batch))
    print_lines(states.reason_lines(options, batch, options.job))
    if fetched.errors:
        print("Repeat the command to fetch what is missing, unless the project has deleted it.")
    if fetched.unfinished or not batch.is_over:
        print(
            f"The batch is {states.batch_words(batch)[0]}: run this again when more jobs are done."
        )
    if batch.njobs and lacks_arguments(batch, fetched):
        print("jobs.csv lacks arguments and parameters: they are not known on this machine.")


def _status(batch: Batch, fetched: Fetched) -> int:
    """Return the exit status."""
    if fetched.errors:
        return 1
    bad = len(fetched.failed_programs)
    done, failed = fetched.fetched + fetched.here - bad, fetched.failed + bad
    # A batch that is being made has no jobs yet.
    if fetched.unfinished or not (done or failed or batch.is_over):
        return 5
    if failed:
        return 3 if done else 4
    return 0


def _json(batch: Batch, fetched: Fetched) -> dict[str, Any]:
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
        "jobs_ended_badly": len(fetched.failed_programs),
        "bytes": fetched.nbytes,
    }
