"""``boinc_gahp batch wait``."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.batch import states
from boinc_gahp.cli.batch.jsons import news_json, print_line
from boinc_gahp.cli.batch.opening import SOME_BATCHES, command, no_more_remarks, opened
from boinc_gahp.cli.batch.showing import batch_cells
from boinc_gahp.cli.main import INTERRUPTED
from boinc_gahp.errors import GahpError, RpcError
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal import table, words
from boinc_gahp.terminal.live import Live, Work
from boinc_gahp.terminal.output import coloured, complain, is_live, print_lines
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.terminal.table import Column
from boinc_gahp.text import count, printable, span

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Sequence

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.project import Project
    from boinc_gahp.terminal.table import Cell


_DESCRIPTION = """\
Waits until each job of the batches is done or has failed. Without a BATCH, it waits for all of your
running batches on the project; --project NAME chooses another. A terminal shows live progress; on a
pipe, a line is printed for each change. If the project is down, wait says so and keeps trying.

A project keeps a batch for a limited time. The wait extends it.

A project calls a job of "batch run" done even if its program failed. So at the end wait asks how
each program ended. Whether it made all of its outputs is seen only by fetch.

Ctrl-C, or a --timeout, ends only the waiting. The jobs continue, and you can wait for them again at
any time.
"""

DONE, FAILED, SOME_FAILED, ALL_FAILED, TIMED_OUT = 0, 1, 3, 4, 5

_STATUSES = {
    DONE: "every job is done, or there was nothing to wait for",
    FAILED: "a batch cannot be waited for, the project no longer has it, or it does not tell how "
    "programs ended",
    SOME_FAILED: "some jobs failed, or their programs ended badly",
    ALL_FAILED: "all jobs failed or ended badly, or the batches were aborted",
    TIMED_OUT: "--timeout has passed before all batches were complete",
}

#: Seconds between two requests to the project, minimum and maximum.
SHORTEST, LONGEST = 1.0, 30.0
#: The least seconds for looking up batches, however short --timeout is.
_LEAST = 5.0


def wait_parser() -> Parser:
    """Return the parser of ``batch wait``."""
    parser = Parser(
        "batch wait",
        _DESCRIPTION,
        examples=(
            "boinc_gahp batch wait 12",
            "boinc_gahp batch wait sweep sweep2 --timeout 2h",
            "boinc_gahp batch wait 12 && boinc_gahp batch fetch 12",
            "boinc_gahp batch wait  # for all running batches",
            "boinc_gahp batch wait 12 --json  # a line of JSON for each change",
        ),
        statuses=_STATUSES,
    )
    longest = {"--timeout SPAN": "wait at most this long: seconds, or 30min, 12h, 7d"}
    parser.takes(SOME_BATCHES | longest)
    return parser.with_common(project=True, json="print a line of JSON for each change")


def wait(options: Namespace) -> int:
    """Wait; return the exit status for the way the batches ended."""
    with opened(options) as project:
        until = None if options.timeout is None else time.monotonic() + options.timeout
        try:
            batches = _found(options, project)
        except RpcError as error:
            if until is None or not error.gave_up:
                raise
            complain(error.with_code(f"{error}; --timeout has passed"))
            return TIMED_OUT
        if not batches:
            if not options.json:
                print(f"None of your batches on {project.host} is running.")
            return DONE
        return wait_for(options, project, batches, until)


def wait_for(
    options: Namespace,
    project: Project,
    batches: Sequence[Batch],
    until: float | None = None,
    *,
    afterwards: str | None = None,
) -> int:
    """Wait for batches and show their progress; return the exit status for how they ended.

    Args:
        options: those of the command, for ``--project``, ``--config`` and ``--json``.
        project: the project.
        batches: at least one.
        until: the time of ``time.monotonic()`` at which the wait ends; None: it has no end.
        afterwards: the command that does what this command would do after the wait, for somebody
            who interrupts it.
    """
    no_more_remarks()
    for batch in batches:
        if batch.state is BatchState.INIT:
            complain(
                f"batch {batch.id} ({printable(batch.name)}) is still being submitted; if that "
                "was interrupted, repeat its submit with the same --name, or abort the batch: "
                "it does not end by itself"
            )
        for unsent in states.unsent_lines(batch):
            complain(unsent)
    try:
        _wait(options, project, batches, until)
    except KeyboardInterrupt:
        again = command(options, "wait", *(batch.id for batch in batches if not batch.is_over))
        complain(f"interrupted; the jobs continue; wait again with: {again}")
        if afterwards is not None:
            complain(f"and then: {afterwards}")
        return INTERRUPTED
    return _ended(options, batches)


def _found(options: Namespace, project: Project) -> list[Batch]:
    """Return the batches, each once; a project that is down is not asked beyond --timeout.

    If none are named, those that will end by themselves; says which ones are still being made.
    """
    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.finding import find_batch, of_account
    from boinc_gahp.api.session import Session

    session = project.session
    if options.timeout is not None:
        rpc = session.rpc.until(time.monotonic() + max(options.timeout, _LEAST))
        session = Session(rpc, session.settings, session.project_settings)
    if options.batch:
        infos = [find_batch(session, each) for each in options.batch]
        return list({info.id: Batch(project, info) for info in infos}.values())
    batches = [Batch(project, info) for info in of_account(session)]
    for batch in batches:
        if batch.state is BatchState.INIT:
            what = states.called(batch)
            complain(f"{what} is still being submitted, so it is not waited for")
    return [each for each in batches if not (each.state is BatchState.INIT or each.is_over)]


def _wait(
    options: Namespace, project: Project, batches: Sequence[Batch], until: float | None
) -> None:
    from boinc_gahp.api.progress import news
    from boinc_gahp.api.watching import Poll, watch

    polls = watch(project.session, batches, poll=Poll(SHORTEST, LONGEST), until=until)
    if options.json or not is_live(sys.stdout):
        for batch in _changed(polls):
            if options.json:
                print_line(_news_json(batch))
            else:
                head = f"{words.at(time.time())}  batch {batch.id} {printable(batch.name)}"
                print(f"{head}: {news(batch)}", flush=True)
        return
    view = View(batches)
    with Live(view.lines, keep=True):
        try:
            for _ in polls:
                view.update()
        finally:
            view.has_ended = True


def _changed(polls: Iterable[Sequence[Batch]]) -> Iterator[Batch]:
    """Yield a batch when it has changed; say once of each that it cannot be kept longer."""
    told = set()
    last: dict[int, object] = {}
    for batches in polls:
        for batch in batches:
            warning = states.renewal_warning(batch)
            if warning and batch.id not in told:
                told.add(batch.id)
                complain(warning)
            trouble = None if batch.trouble is None else type(batch.trouble)
            numbers = (batch.njobs, batch.nover, batch.nerror_jobs, batch.latest_counts)
            seen = (batch.state, *numbers, batch.gone, trouble, batch.attempts)
            if last.get(batch.id) != seen:
                last[batch.id] = seen
                yield batch


def _news_json(batch: Batch) -> dict[str, Any]:
    """Return a batch's news; the last ones have the reasons for which jobs failed."""
    is_told = batch.is_over and not batch.gone
    with suppress(GahpError):  # said at the end
        _failed_programs(batch, quiet=True)
    return {**news_json(batch), **states.reasons_json(batch if is_told else None)}


def _ended(options: Namespace, batches: Sequence[Batch]) -> int:
    """Print how it ended, and useful next commands; return the exit status."""
    left = [batch for batch in batches if not batch.is_over]
    gone = [batch for batch in batches if batch.gone]
    for batch in left:
        trouble = "" if batch.trouble is None else f"; the last query failed: {batch.trouble}"
        complain(
            f"batch {batch.id} ({printable(batch.name)}) is not over after "
            f"{span(options.timeout)}: {batch.nover:,} of {count(batch.njobs, 'job')} "
            f"are; it continues on the project{trouble}"
        )
    for batch in gone:
        what = states.called(batch)
        complain(f"the project {batch.project.host} does not know {what} any more")
    fetched = getattr(options, "fetch", None) is not None and not left and not gone
    bad = [0] * len(batches)
    is_told = True
    for number, batch in enumerate(() if fetched else batches):
        try:
            bad[number] = _failed_programs(batch, quiet=options.json)
        except GahpError as error:
            is_told = False
            what = states.called(batch)
            complain(error.with_code(f"how the programs of {what} ended is not known: {error}"))
    if not options.json:
        for batch in batches:
            if batch.is_over and not batch.gone:
                _say_end(options, batch, fetched=fetched)
    if gone or not is_told:
        return FAILED
    return TIMED_OUT if left else _status(batches, bad)


def _failed_programs(batch: Batch, *, quiet: bool) -> int:
    """Ask how the programs of a batch ended, if it is over; return how many ended badly."""
    from boinc_gahp.api.outputs.fetching_batch import learn_endings
    from boinc_gahp.api.progress import StepView

    if not batch.is_over or batch.gone or batch.state is BatchState.RETIRED:
        return 0
    with Work(quiet=quiet) as work:
        return learn_endings(batch, progress=StepView(work.show))


def _say_end(options: Namespace, batch: Batch, *, fetched: bool) -> None:
    """Print how a batch ended; ``fetched``: its outputs are fetched next."""
    text, colour = states.batch_words(batch)
    head = f"Batch {batch.id} {printable(batch.name)} is {coloured(text, colour, sys.stdout)}"
    print(f"{head}: {batch.ndone:,} of {count(batch.njobs, 'job')} done.")
    if fetched:
        return  # the fetch says the rest
    print_lines(states.reason_lines(options, batch))
    if batch.lease_is_over:
        print(states.lease_warning(batch))
    if batch.ndone and batch.state is not BatchState.RETIRED:
        print(states.outputs_line(options, batch))


def _status(batches: Sequence[Batch], bad: Sequence[int]) -> int:
    """Return the exit status for batches that are over; of each, ``bad`` programs ended badly."""
    well = [batch.ndone - number for batch, number in zip(batches, bad, strict=True)]
    aborted = [batch.state is BatchState.ABORTED for batch in batches]
    if well == [batch.njobs for batch in batches] and not any(aborted):
        return DONE
    nothing = [was or not number for was, number in zip(aborted, well, strict=True)]
    return ALL_FAILED if all(nothing) else SOME_FAILED


_COLUMNS = (
    Column("id", rank=4, right=True),
    Column("name", minimum=16, middle=True),
    Column("state", rank=5),
    Column("", rank=6),
    Column("over", rank=1, right=True),
    Column(JobState.QUEUED.value, rank=2, right=True),
    Column(JobState.IN_PROGRESS.value, rank=2, right=True),
    Column(JobState.DONE.value, rank=2, right=True),
    Column(JobState.FAILED.value, rank=1, right=True),
    Column("end", rank=3),
)
#: The most batches whose longest jobs are told about.
_TOLD = 3


class View:
    """The terminal's display while waiting.

    Attributes:
        has_ended: whether to leave out what is useful only while waiting.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._begun = time.monotonic()
        self.has_ended = False
        #: Rows, and whether each is over; troubles; what else is told. Replaced as a whole, since
        #: another thread draws it.
        self._shown: tuple[list[tuple[bool, tuple[Cell, ...]]], list[str], list[str]] = [], [], []
        self.update()

    def update(self) -> None:
        """Set what is known about the batches."""
        from boinc_gahp.api.progress import longest_words

        cells = [(batch.is_over, batch_cells(batch)) for batch in self._batches]
        rows = [(over, tuple(each[column.title] for column in _COLUMNS)) for over, each in cells]
        troubles = dict.fromkeys(
            f"The project cannot be asked at present: {printable(str(batch.trouble))}"
            for batch in self._batches
            if batch.trouble is not None and not batch.is_over
        )
        troubles |= dict.fromkeys(filter(None, map(states.renewal_warning, self._batches)))
        told = [
            f"Of {printable(batch.name)}, {printable(text)}."
            for batch in self._batches
            for text in (longest_words(batch), batch.attempts)
            if text
        ]
        self._shown = rows, list(troubles), told[:_TOLD]

    def lines(self, width: int) -> list[str]:
        """Return the lines for a terminal of this width; unfinished batches come first."""
        rows, troubles, told = self._shown
        room = max(1, shutil.get_terminal_size().lines - 5 - len(told))
        if len(rows) > room:
            rows = sorted(rows, key=lambda row: row[0])
        cells = [row for _, row in rows[:room]]
        lines = list(table.lines(_COLUMNS, cells, sys.stdout, width=width))
        if len(rows) > room:
            lines.append(f"… and {count(len(rows) - room, 'more batch')}")
        for trouble in troubles:
            lines.append(coloured(table.cut(trouble, width), "yellow", sys.stdout))
        if not self.has_ended:
            lines += [table.cut(text, width) for text in told]
            waited = span(time.monotonic() - self._begun)
            text = f"Waiting for {waited}. Ctrl-C ends the waiting, not the jobs."
            lines.append(coloured(table.cut(text, width), "faint", sys.stdout))
        return lines
