"""``boinc_gahp batch retry``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.cli.batch.jsons import batch_json, print_json
from boinc_gahp.cli.batch.opening import BATCH, JOBS, as_typed, command, on_interrupt, opened
from boinc_gahp.cli.batch.states import retry_lines
from boinc_gahp.errors import GahpError
from boinc_gahp.states import JobState
from boinc_gahp.terminal import words
from boinc_gahp.terminal.live import Work
from boinc_gahp.terminal.output import complain, print_lines
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.text import count, listed, printable

if TYPE_CHECKING:
    from argparse import Namespace

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.control import RetryPlan
    from boinc_gahp.api.known_batch import KnownBatch

_DESCRIPTION = """\
Sends failed jobs of a batch again, with the same arguments, files and settings. They become a new
batch, BATCH-retry1, the next time BATCH-retry2, and so on. "fetch BATCH" puts their outputs where
those of the failed jobs would be. A job that was sent again, and has failed again, is sent once
more. A retry of BATCH-retry1 repeats jobs of BATCH.

It is safe to repeat the command: each job is sent once, even if the command was killed, or runs
twice at the same time.

This machine has to know what was submitted, so run it where the batch was submitted. Input files
that have changed since are replaced by the project's copies, if it still has them.
"""

_STATUSES = {
    0: "the jobs are sent again, or there is none to send",
    1: "they could not be sent; one line on stderr says why",
}
#: How many jobs are named.
_NAMED = 5


def retry_parser() -> Parser:
    """Return the parser of ``batch retry``."""
    parser = Parser(
        "batch retry",
        _DESCRIPTION,
        examples=(
            "boinc_gahp batch retry 12",
            "boinc_gahp batch retry sweep --job sweep_007 --job sweep_008",
            "boinc_gahp batch retry sweep --dry-run",
        ),
        statuses=_STATUSES,
    )
    parser.takes({**BATCH, **JOBS, "--dry-run": "show what would be sent"})
    return parser.with_common(
        project=True, json="print the new batch as JSON; with --dry-run, the plan"
    )


def retry(options: Namespace) -> int:
    """Send failed jobs again; return 0 if they are sent, or there is none to send."""
    from boinc_gahp.api.control import plan_retry
    from boinc_gahp.api.progress import StepView

    with opened(options) as project:
        batch = project.batch(options.batch)
        plan = plan_retry(batch, options.job)
        if options.dry_run:
            _print_plan(options, plan)
            return 0
        made = None
        if plan.jobs:
            go_on = as_typed(options)
            try:
                with on_interrupt(f"interrupted; to continue: {go_on}"), Work() as work:
                    made = batch.retry(options.job, progress=StepView(work.show))
            except GahpError as error:
                complain(error.with_code())
                if not error.is_final:
                    complain(f"to continue: {go_on}")
                return 1
        if options.json:
            values = None if made is None else batch_json(made)
            print_json({"parent": plan.parent.id, "jobs_left": plan.left, "batch": values})
        elif made is None:
            _print_nothing(options, plan)
        else:
            _print_made(options, plan, made)
    return 0


def _print_made(options: Namespace, plan: RetryPlan, made: Batch) -> None:
    parent = plan.parent
    jobs = count(made.njobs, "job")
    print(
        f"Batch {made.id} {printable(made.name)!r}: {jobs} of batch {parent.id} "
        f"{printable(parent.name)!r} sent again on {made.project.host}."
    )
    if made.expire_time:
        end = words.at(made.expire_time)[:-3]
        print(f"The project keeps it until {end}; wait and fetch extend this.")
    if plan.left:
        again = command(options, "retry", parent.id)
        print(f"{count(plan.left, 'more job')} failed since this retry was begun: {again}")
    print("Next:")
    print(f"  {command(options, 'wait', made.id)}")
    print(f"  {command(options, 'fetch', parent.id)}")


def _print_nothing(options: Namespace, plan: RetryPlan) -> None:
    """Print why nothing is sent."""
    standing = plan.standing
    name = f"batch {plan.parent.id} {printable(plan.parent.name)!r}"
    missing = _not_here(plan.parent)
    if missing:
        print(
            f"{count(missing, 'job')} of {name} {'is' if missing == 1 else 'are'} done, but not "
            "fetched here. If fetch says that the project has deleted their outputs, submit these "
            "jobs as a new batch."
        )
    if not (standing.saved or standing.under_way or standing.failed):
        print(f"No job of {name} has failed: there is nothing to send again.")
        return
    print(f"Nothing to send: all jobs of {name} that failed were sent again.")
    print_lines(retry_lines(options, standing))


def _not_here(batch: KnownBatch) -> int:
    """Return how many jobs are done, and lack in the directory of the last fetch from here."""
    from boinc_gahp.api.family import note_of

    root = batch.directory
    if root is None:
        return 0
    jobs = batch.session.rpc.iter_jobs(batch.id)
    done = (job for job in jobs if job.state is JobState.DONE)
    return sum(note_of(batch, job, root) is None for job in done)


def _print_plan(options: Namespace, plan: RetryPlan) -> None:
    if options.json:
        name = plan.name if plan.jobs else None
        known = {"name": name, "parent": plan.parent.id, "jobs_left": plan.left}
        print_json({**known, "jobs": list(plan.jobs)})
        return
    if not plan.jobs:
        _print_nothing(options, plan)
        return
    names = [printable(name) for name in plan.jobs]
    print(
        f"Batch {printable(plan.name)!r} would send {count(len(names), 'job')} of batch "
        f"{plan.parent.id} {printable(plan.parent.name)!r} again: {listed(names, _NAMED)}."
    )
    print_lines(retry_lines(options, plan.standing))
    print("Without --dry-run this is sent.")
