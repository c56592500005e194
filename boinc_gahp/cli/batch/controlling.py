"""``boinc_gahp batch abort``, ``retire`` and ``extend``."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch import states
from boinc_gahp.cli.batch.jsons import batch_json, error_json, print_json
from boinc_gahp.cli.batch.opening import BATCHES, JOBS, command, opened
from boinc_gahp.errors import BatchConflict, GahpError
from boinc_gahp.quantities import LEASE
from boinc_gahp.states import BatchState
from boinc_gahp.terminal import words
from boinc_gahp.terminal.live import remark
from boinc_gahp.terminal.output import agreed, complain
from boinc_gahp.terminal.parsing import Parser, quantity
from boinc_gahp.text import count, printable, span

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.project import Project

_ABORT = """\
Stops batches. Jobs that no volunteer has yet are never sent out, and the results of running jobs no
longer count. Finished jobs stay done, and their outputs can still be fetched. This cannot be
undone.

With --job, only these jobs of one batch are stopped.

On a terminal, it shows what it would stop and asks first. Elsewhere, and with --yes, it does not
ask.
"""

_RETIRE = """\
Tells the project that batches are no longer needed. The project may then delete their files and
jobs at once, even outputs that were not fetched. Unfinished jobs are aborted. The batches are no
longer listed. Retries of a batch are batches of their own, and are not retired with it.

On a terminal, it asks first if that would lose unfinished jobs, or outputs that were not fetched on
this machine. Elsewhere, and with --yes, it does not ask, but loses such outputs only with
--unfetched.
"""

_EXTEND = """\
Sets for how long from now the project keeps batches. After that the project may abort them and
delete their files. A batch that is kept longer already stays as it is.
"""

_SEVERAL = """
If something is wrong with one batch, the others are still processed.
"""


@dataclass(slots=True)
class _Result:
    """The outcome for a named batch; the error is None if all is well."""

    named: str
    batch: Batch | None = None
    error: GahpError | None = None


def abort_parser() -> Parser:
    """Return the parser of ``batch abort``."""
    parser = Parser(
        "batch abort",
        _ABORT + _SEVERAL,
        examples=(
            "boinc_gahp batch abort 12",
            "boinc_gahp batch abort sweep --job sweep_007 --job sweep_008",
            "boinc_gahp batch abort 12 13 --yes",
        ),
    )
    return _with_rest(parser.takes(BATCHES | JOBS))


def retire_parser() -> Parser:
    """Return the parser of ``batch retire``."""
    parser = Parser(
        "batch retire",
        _RETIRE + _SEVERAL,
        examples=(
            "boinc_gahp batch retire 12",
            "boinc_gahp batch fetch 12 && boinc_gahp batch retire 12 --yes",
        ),
    )
    parser.takes({**BATCHES, "--unfetched": "lose outputs that were not fetched here"})
    return _with_rest(parser)


def extend_parser() -> Parser:
    """Return the parser of ``batch extend``."""
    parser = Parser(
        "batch extend",
        _EXTEND + _SEVERAL,
        examples=(
            "boinc_gahp batch extend 12 --for 7d",
            "boinc_gahp batch extend sweep sweep2 --for 8w",
        ),
    )
    until = {"--for SPAN": "this long from now: seconds, or 12h, 7d, 2w"}
    parser.takes(BATCHES).takes(until, dest="span", required=True, type=quantity(LEASE))
    return parser.with_common(project=True, json="print JSON")


def abort(options: Namespace) -> int:
    """Abort batches or jobs; return 0 if all were aborted."""
    if options.job and len(options.batch) > 1:
        options.parser.error("--job goes with one batch")
    with opened(options) as project:
        found = _found(project, options.batch)
        if options.job:
            return _abort_jobs(options, found[0])
        alive = [each.batch for each in found if each.batch is not None and not each.batch.is_over]
        jobs = sum(batch.njobs - batch.nover for batch in alive)
        what = f"{count(len(alive), 'batch')} with {count(jobs, 'unfinished job')}"
        if alive and not _may(options, alive, f"Abort {what}?"):
            return 1
        return _each(options, found, _abort)


def retire(options: Namespace) -> int:
    """Retire batches; return 0 if all were retired."""
    from boinc_gahp.api.outputs.fetching import unfetched

    with opened(options) as project:
        found = _found(project, options.batch)
        batches = [each.batch for each in found if each.batch is not None]
        at_stake = [batch for batch in batches if batch.state is not BatchState.RETIRED]
        left = sum(batch.njobs - batch.nover for batch in at_stake if not batch.is_over)
        alone = {} if options.unfetched else {each.id: unfetched(each) for each in at_stake}
        outputs = sum(map(len, alone.values()))
        lost = []
        if outputs:
            jobs = count(outputs, "job")
            lost.append(f"the outputs of {jobs}, which were not fetched on this machine")
        if left:
            lost.append(count(left, "unfinished job"))
        what = count(len(at_stake), "batch")
        question = f"Retiring {what} loses {', and '.join(lost)}. Retire?"
        if lost and not _may(options, at_stake, question):
            return 1
        # Somebody who was asked has agreed.
        kept = alone if options.yes or _screen() is None else {}
        return _each(options, found, partial(_retire, options, kept))


def extend(options: Namespace) -> int:
    """Set the end of batches; return 0 if it was set for all."""
    until = time.time() + options.span

    def act(batch: Batch) -> str:
        if batch.state is BatchState.RETIRED:
            raise BatchConflict(
                f"{states.called(batch)} of {batch.project.host} is retired: "
                "there is nothing left to keep"
            )
        if (batch.expire_time or math.inf) > until:
            end = words.at(batch.expire_time) if batch.expire_time else "it is retired"
            return f"is unchanged: it is kept until {end} already"
        batch.extend(until)
        return f"is kept until {words.at(until)} ({span(options.span)} from now)"

    with opened(options) as project:
        return _each(options, _found(project, options.batch), act)


def _with_rest(parser: Parser) -> Parser:
    return parser.takes({"--yes": "do not ask"}).with_common(project=True, json="print JSON")


def _found(project: Project, named: Sequence[str]) -> list[_Result]:
    """Look up batches; a batch that is named twice counts once."""
    found: list[_Result] = []
    for each in named:
        try:
            batch = project.batch(each)
        except GahpError as error:
            found.append(_Result(each, error=error))
            continue
        if all(other.batch is None or other.batch.id != batch.id for other in found):
            found.append(_Result(each, batch))
    return found


def _may(options: Namespace, batches: Sequence[Batch], question: str) -> bool:
    """Show what will be done, then ask on a terminal."""
    shown = []
    for batch in batches:
        state, _ = states.batch_words(batch)
        over = f"{batch.nover:,} of {count(batch.njobs, 'job')} over"
        shown.append(f"batch {batch.id}  {printable(batch.name)}: {state}, {over}")
    return _agreed(options, shown, question)


def _screen() -> TextIO | None:
    """Return where to ask; None: there is nobody to ask."""
    if not sys.stdin.isatty():
        return None
    return next((each for each in (sys.stderr, sys.stdout) if each.isatty()), None)


def _agreed(options: Namespace, shown: Sequence[str], question: str) -> bool:
    """Return whether to go on; if there is nobody to ask, yes."""
    screen = _screen()
    if options.yes or screen is None:
        return True
    for line in shown:
        print(line, file=screen)
    if agreed(question, screen):
        return True
    print("Nothing was done.", file=screen)
    return False


def _each(options: Namespace, found: Sequence[_Result], act: Callable[[Batch], str]) -> int:
    """Do something to each batch, and print the outcome; return 0 if all is well."""
    for each in found:
        if each.batch is not None:
            try:
                text = act(each.batch)
                if not options.json:
                    print(f"Batch {each.batch.id} {printable(each.batch.name)} {text}.", flush=True)
            except GahpError as trouble:
                each.error = trouble
        if each.error is not None:
            complain(each.error.with_code())
    if options.json:
        print_json(
            {
                "asked": result.named,
                "batch": None if result.batch is None else batch_json(result.batch),
                **error_json(result.error),
            }
            for result in found
        )
    return int(any(result.error is not None for result in found))


def _abort(batch: Batch) -> str:
    if batch.is_over:
        state, _ = states.batch_words(batch)
        return f"is {state} already: there is nothing to abort"
    done = batch.ndone
    if batch.state is BatchState.INIT:
        remark(
            f"Batch {batch.id} is still being submitted: it takes a few s to see whether the "
            "abort lasts."
        )
    batch.abort()
    if batch.state is not BatchState.ABORTED:
        state, _ = states.batch_words(batch)
        return f"was over before it could be aborted: it is {state}"
    done_jobs = f"; its {count(done, 'job')} done can still be fetched" if done else ""
    return f"is aborted{done_jobs}"


def _retire(options: Namespace, unfetched: Mapping[int, Sequence[str]], batch: Batch) -> str:
    if batch.state is BatchState.RETIRED:
        return "is retired already"
    names = unfetched.get(batch.id)
    if names:
        which = printable(names[0]) if len(names) == 1 else f"{len(names):,} jobs"
        raise BatchConflict(
            f"batch {batch.id} {printable(batch.name)} is not retired: the outputs of {which} were "
            f"not fetched on this machine. To fetch them: {command(options, 'fetch', batch.id)}; "
            "to lose them, retire it with --unfetched"
        )
    batch.retire()
    kept = []
    with suppress(GahpError):
        kept = [each for each in batch.retries() if each.state is not BatchState.RETIRED]
    if not kept:
        return "is retired"
    named = ", ".join(f"{each.id} {printable(each.name)}" for each in kept)
    how = command(options, "retire", *(each.id for each in kept))
    what = "its retry is not" if len(kept) == 1 else "its retries are not"
    return f"is retired; {what} ({named}): {how}"


def _abort_jobs(options: Namespace, found: _Result) -> int:
    """Abort some jobs of a batch."""
    if found.batch is None:
        return _each(options, [found], _abort)
    batch = found.batch
    jobs = list(batch.jobs(options.job))
    alive = [job for job in jobs if not job.state.is_over]
    shown = [f"job {job.id}  {printable(job.name)}: {job.state.value}" for job in alive]
    what = count(len(alive), "job")
    question = f"Abort {what} of batch {batch.id} {printable(batch.name)}?"
    if alive and not _agreed(options, shown, question):
        return 1

    def act(batch: Batch) -> str:
        for job in jobs:
            if job not in alive and not options.json:
                print(f"Job {printable(job.name)} is {job.state.value} already.")
        if not alive:
            return "is unchanged: there is nothing to abort"
        batch.abort([job.id for job in alive])
        again = command(options, "show", batch.id, "--state", "failed")
        return f"continues without {count(len(alive), 'job')}; {again} lists what has failed"

    return _each(options, [found], act)
