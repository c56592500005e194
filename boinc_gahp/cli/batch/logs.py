"""``boinc_gahp batch logs``."""

from __future__ import annotations

import sys
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.batch.jsons import picked, print_json
from boinc_gahp.cli.batch.opening import BATCH, PATIENCE, Choice, opened_to_look
from boinc_gahp.states import JobState
from boinc_gahp.terminal.live import remark
from boinc_gahp.terminal.output import coloured, complain
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.text import count, printable, show, visible

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.fetch.job_end import JobEnd

_DESCRIPTION = """\
Shows what jobs wrote to their stderr. Without JOB it shows the jobs that are over, on a terminal
the first 20 of them. Jobs that ended well and wrote nothing are only counted.

Of a job of "batch run" it also shows what its program wrote to its stdout.

Of a failed job it shows why it failed, and how each attempt on a volunteer's computer ended; of a
JOB that is not over, how the attempts ended so far. BOINC calls these attempts instances. Few
projects tell programs the stderr of a failed job. But their web sites show it, on a page for each
instance, to people who are logged in there. The command prints the addresses of these pages.

Each job takes at least one request. Characters that could control a terminal are shown as Python
writes them.
"""

_STATUSES = {
    0: "all that is known is shown",
    1: "the project could not be asked about a job",
}

#: Jobs shown on a terminal if none are named.
_SHOWN = 20

_NOT_TOLD = (
    "This project does not tell the stderr of failed jobs, as BOINC's server does not. People see "
    "it on the web pages above, once they are logged in on the project's web site."
)


def logs_parser() -> Parser:
    """Return the parser of ``batch logs``."""
    parser = Parser(
        "batch logs",
        _DESCRIPTION,
        examples=(
            "boinc_gahp batch logs 12 sweep_007",
            "boinc_gahp batch logs sweep --failed --lines 5",
            "boinc_gahp batch logs sweep --all > logs.txt",
        ),
        statuses=_STATUSES,
    )
    shown = {
        "[JOB ...]": "name or id of a job",
        "--failed": "only jobs that failed",
        "--lines N": "only the last N lines of each stderr",
        "--all": "show all jobs, even on a terminal",
    }
    parser.takes(BATCH | shown | PATIENCE)
    return parser.with_common(project=True, json="print JSON")


def logs(options: Namespace) -> int:
    """Print the logs; return 0 if all could be asked for."""
    with opened_to_look(options) as project:
        batch = project.batch(options.batch)
        return _print_json(options, batch) if options.json else _print(options, batch)


def _is_wanted(options: Namespace, state: JobState) -> bool:
    if options.failed and state is not JobState.FAILED:
        return False
    return bool(options.job) or state.is_over


def _found(options: Namespace, batch: Batch, choice: Choice) -> Iterator[JobEnd]:
    """Yield the logs of the chosen jobs; say for which of them the project could not be asked."""
    from boinc_gahp.api.outputs.logs import logs_of

    for log in logs_of(batch, jobs=options.job or None, wanted=choice):
        if log.trouble is not None and log.state is JobState.DONE:
            complain(log.trouble.with_code(f"job {printable(log.name)!r}: {log.trouble}"))
            choice.is_whole = False
        yield log


def _print(options: Namespace, batch: Batch) -> int:
    limited = sys.stdout.isatty() and not options.job and not options.all
    choice = Choice(partial(_is_wanted, options), _SHOWN if limited else None)
    untold = False
    coming = _found(options, batch, choice)
    first = list(islice(coming, 2))
    is_single = len(first) == 1
    number = silent = 0
    for log in chain(first, coming):
        # Those that somebody looks for would be lost among them.
        is_silent = log.state is JobState.DONE and log.stderr == "" and not log.stdout
        if not is_single and not options.job and is_silent:
            silent += 1
            continue
        if not is_single:
            if number:
                print()
            print(coloured(f"==> {printable(log.name)}: {_state(log)} <==", "bold", sys.stdout))
        number += 1
        for line in _body(options, batch, log, is_single=is_single):
            print(line)  # as the job wrote it
        untold = untold or (bool(log.failed_attempts) and not log.stderr)
    if untold:
        remark(_NOT_TOLD)
    if silent:
        remark(f"{count(silent, 'job')} that ended well wrote nothing to stderr.")
    if choice.left_out:
        remark(f"… and {count(choice.left_out, 'more job')}; --all shows them, too.")
    if not number and not silent:
        remark(_nothing(options, choice))
    return int(not choice.is_whole)


def _state(log: JobEnd) -> str:
    return f"{log.state.value}: {printable(log.why)}" if log.why else log.state.value


def _body(options: Namespace, batch: Batch, log: JobEnd, *, is_single: bool) -> Iterator[str]:
    """Yield the lines about a job below its head line."""
    from boinc_gahp.api.outputs.logs import page_of

    if is_single and log.state is not JobState.DONE:
        yield f"{printable(log.name)}: {_state(log)}"
    if log.stdout is not None:
        if log.stdout:
            yield "stdout:"
            yield from _lines(log.stdout, options.lines)
        if log.stderr:
            yield "stderr:"
    elif log.state is not JobState.DONE:
        if log.exit_statuses:
            yield f"exit statuses of its instances: {', '.join(map(str, log.exit_statuses))}"
        for each in log.instances:
            page = "" if log.stderr else f"  {page_of(batch.project.url, each)}"
            yield f"instance {printable(each.name)}: {printable(each.state)}{page}"
        if log.stderr:
            yield "stderr of the last one that failed:"
        if not log.state.is_over:
            yield "Still running: a job's stderr comes with its outputs."
    if log.stderr is not None:
        yield from _lines(log.stderr, options.lines)
    if log.stderr == "" and log.stdout is None:
        remark(f"Job {printable(log.name)} wrote nothing to stderr.")


def _lines(text: str, most: int | None) -> Iterator[str]:
    return (visible(line, _shown) for line in _last(text, most))


def _last(text: str, most: int | None) -> Sequence[str]:
    from boinc_gahp.fetch.job_end import lines_of

    lines = lines_of(text)
    return lines if most is None else lines[-most:]


def _shown(character: str) -> str:
    return character if character == "\t" else show(character)


def _nothing(options: Namespace, choice: Choice) -> str:
    others = ", ".join(f"{number:,} {state.value}" for state, number in choice.counts.items())
    what = "No job has failed" if options.failed else "No job is over yet"
    return f"{what}: {others}." if others else "The batch has no jobs."


def _print_json(options: Namespace, batch: Batch) -> int:
    from boinc_gahp.api.outputs.logs import page_of

    choice = Choice(partial(_is_wanted, options))

    def each() -> Iterator[dict[str, Any]]:
        for log in _found(options, batch, choice):
            yield {
                "job": log.name,
                "id": log.id,
                "state": log.state.name.lower(),
                "why": log.why or None,
                "exit_statuses": list(log.exit_statuses),
                "stderr": _tail(log.stderr, options.lines),
                "stdout": _tail(log.stdout, options.lines),
                "instances": [
                    {
                        **picked(instance, "id", "name", "state"),
                        "page": page_of(batch.project.url, instance),
                    }
                    for instance in log.instances
                ],
            }

    print_json({"batch": batch.id, "name": batch.name}, jobs=each())
    return int(not choice.is_whole)


def _tail(text: str | None, most: int | None) -> str | None:
    if text is None or most is None:
        return text
    return "".join(f"{line}\n" for line in _last(text, most))
