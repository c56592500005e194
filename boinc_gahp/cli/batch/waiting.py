"""``boinc_gahp batch wait``."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from boinc_gahp.cli.batch import arguments as reading, states
from boinc_gahp.cli.batch.jsons import news_json, print_line
from boinc_gahp.cli.batch.opening import command, no_more_remarks, opened
from boinc_gahp.cli.batch.reasons_view import failed_in, reason_lines, reasons_json
from boinc_gahp.cli.main import INTERRUPTED
from boinc_gahp.errors import ProjectDown, TransportError
from boinc_gahp.states import BatchState
from boinc_gahp.terminal import Column, Live, Parser, bar, coloured, complain, table, words
from boinc_gahp.text import printable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from boinc_gahp.api import Batch, Project
    from boinc_gahp.terminal import Cell

_DESCRIPTION = """\
Waits until each job of the batches is done or has failed. A terminal shows live progress; on a
pipe, a line is printed for each change. If the project is down, wait says so and keeps trying.

While it waits, it renews the leases of the batches, so that the project keeps them.

Ctrl-C, or a --timeout, ends only the waiting. The jobs continue, and you can wait for them again at
any time.
"""

DONE, FAILED, SOME_FAILED, ALL_FAILED, TIMED_OUT = 0, 1, 3, 4, 5

_STATUSES = {
    DONE: "every job is done",
    FAILED: "a batch cannot be waited for, or the project no longer has it",
    SOME_FAILED: "some jobs failed",
    ALL_FAILED: "all jobs failed, or the batches were aborted",
    TIMED_OUT: "--timeout has passed before all batches were complete",
}

#: Seconds between two requests to the project, minimum and maximum.
SHORTEST, LONGEST = 1.0, 30.0
#: The least seconds for looking up batches, however short --timeout is.
_LEAST = 5.0

_COLUMNS = (
    Column("id", rank=4, right=True),
    Column("name", minimum=16, middle=True),
    Column("state", rank=1),
    Column("", rank=2),
    Column("done", rank=0, right=True),
    Column("jobs over", rank=1, right=True),
    Column("failed", rank=1, right=True),
    Column("speed", rank=5, right=True),
    Column("end", rank=3),
)
_WIDE = 120


def wait_parser(config: str | None = None) -> Parser:
    """Return the parser of ``batch wait``."""
    parser = Parser(
        "batch wait",
        _DESCRIPTION,
        examples=(
            "boinc_gahp batch wait 12",
            "boinc_gahp batch wait sweep sweep2 --timeout 2h",
            "boinc_gahp batch wait 12 && boinc_gahp batch fetch 12",
            "boinc_gahp batch wait 12 --json  # a JSON object on a line for each change",
        ),
        statuses=_STATUSES,
    )
    reading.add_batch(parser, several=True)
    parser.add_argument(
        "--timeout",
        type=reading.span,
        metavar="SPAN",
        help="wait at most this long: seconds, or 30min, 12h, 7d",
    )
    reading.add_common(parser, config, json="print JSON: for each change an object on a line")
    return parser


def wait(arguments: list[str], config: str | None) -> int:
    """Wait; return the exit status for the way the batches ended."""
    options = wait_parser(config).read(arguments)
    with opened(options) as project:
        until = None if options.timeout is None else time.monotonic() + options.timeout
        try:
            batches = _found(options, project)
        except (ProjectDown, TransportError) as error:
            from boinc_gahp.rpc import BACKOFF

            # The rest of --timeout may be too short for another attempt.
            if until is None or time.monotonic() < until - BACKOFF.longest:
                raise
            complain(error.told(f"{error}; --timeout has passed"))
            return TIMED_OUT
        no_more_remarks()
        for batch in batches:
            if batch.state is BatchState.INIT:
                complain(
                    f"batch {batch.id} ({printable(batch.name)}) is still being submitted; if that "
                    "was interrupted, repeat its submit with the same --name, or abort the batch: "
                    "it does not end by itself"
                )
            unsent = states.unsent_words(batch)
            if unsent is not None:
                complain(unsent)
        try:
            _wait(options, project, batches, until)
        except KeyboardInterrupt:
            again = command(options, "wait", *(batch.id for batch in batches if not batch.is_over))
            complain(f"interrupted; the jobs continue; wait again with: {again}")
            return INTERRUPTED
        return _ended(options, batches)


def _found(options: Namespace, project: Project) -> list[Batch]:
    """Return the batches, each once; a project that is down is not asked beyond --timeout."""
    from boinc_gahp.api import Batch, Session, find_batch

    session = project.session
    if options.timeout is not None:
        rpc = session.rpc.until(time.monotonic() + max(options.timeout, _LEAST))
        session = Session(rpc, session.settings, session.project_settings)
    infos = [find_batch(session, each) for each in options.batch]
    return list({info.id: Batch(project, info) for info in infos}.values())


def _wait(
    options: Namespace, project: Project, batches: Sequence[Batch], until: float | None
) -> None:
    from boinc_gahp.api import Poll, watch

    polls = watch(project.session, batches, poll=Poll(SHORTEST, LONGEST), until=until)
    if options.json:
        news = _News(batches)
        for _ in polls:
            for batch in news.changed():
                print_line(_news_json(batch))
        return
    view = _View(batches)
    with Live(view.lines, keep=True) as live:
        if live.is_live:
            try:
                for _ in polls:
                    view.update()
            finally:
                view.end()
        else:
            news = _News(batches)
            for _ in polls:
                for batch in news.changed():
                    live.say(_line(batch, words.now()))


def _news_json(batch: Batch) -> dict[str, Any]:
    """Return a batch's news; the last ones have the reasons for which jobs failed."""
    failed = failed_in(batch) if batch.is_over and not batch.gone else None
    return {**news_json(batch, words.now()), **reasons_json(failed)}


class _News:
    """Finds the batches that have changed since the last look."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._last: dict[int, object] = {}

    def changed(self) -> list[Batch]:
        """Return the batches that have changed since the last call."""
        found = []
        for batch in self._batches:
            trouble = None if batch.trouble is None else type(batch.trouble)
            seen = (batch.state, batch.njobs, batch.nover, batch.nerror_jobs, batch.gone, trouble)
            if self._last.get(batch.id) != seen:
                self._last[batch.id] = seen
                found.append(batch)
        return found


def _line(batch: Batch, now: float) -> str:
    """Return a batch's news on one line."""
    head = f"{words.at(now)}  batch {batch.id} {printable(batch.name)}: "
    if batch.trouble is not None and not batch.is_over:
        return f"{head}the project cannot be asked at present: {printable(str(batch.trouble))}"
    if batch.gone:
        return f"{head}the project no longer has it"
    text, _ = states.batch_words(batch)
    head += text
    if batch.state is not BatchState.INIT:
        head += f", {batch.nover:,} of {words.count(batch.njobs, 'job')} over"
    if batch.nerror_jobs:
        head += f", {batch.nerror_jobs:,} failed"
    end = states.expected_end(batch, now)
    return head if end is None else f"{head}, the end is expected {words.ahead(end, now)}"


class _View:
    """The terminal's display while waiting."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._ended = False
        self._rows: list[tuple[bool, tuple[Cell, ...]]] = []
        self._troubles: list[str] = []
        self.update()

    def update(self) -> None:
        """Set what is known about the batches."""
        now = words.now()
        rows = [(batch.is_over, _row(batch, now)) for batch in self._batches]
        troubles = dict.fromkeys(
            printable(str(batch.trouble))
            for batch in self._batches
            if batch.trouble is not None and not batch.is_over
        )
        with self._lock:
            self._rows = rows
            self._troubles = list(troubles)

    def end(self) -> None:
        """Remove what is useful only while waiting."""
        with self._lock:
            self._ended = True

    def lines(self, width: int) -> list[str]:
        """Return the lines for a terminal of this width; unfinished batches come first."""
        with self._lock:
            rows, troubles, ended = self._rows, self._troubles, self._ended
        room = max(1, shutil.get_terminal_size().lines - 5)
        if len(rows) > room:
            rows = sorted(rows, key=lambda row: row[0])
        length = 20 if width >= _WIDE else 8
        cells = [(*row[:3], _bar(row[3], length), *row[4:]) for _, row in rows[:room]]
        lines = list(table.lines(_COLUMNS, cells, sys.stdout, width=width))
        if len(rows) > room:
            lines.append(f"… and {words.count(len(rows) - room, 'more batch', 'more batches')}")
        for trouble in troubles:
            text = f"The project cannot be asked at present: {trouble}"
            lines.append(coloured(table.cut(text, width), "yellow", sys.stdout))
        if not ended:
            waited = words.span(time.monotonic() - self._begun)
            text = f"Waiting for {waited}. Ctrl-C ends the waiting, not the jobs."
            lines.append(coloured(table.cut(text, width), "faint", sys.stdout))
        return lines


def _row(batch: Batch, now: float) -> tuple[Cell, ...]:
    state = ("gone", "red") if batch.gone else states.batch_words(batch)
    if batch.state is BatchState.INIT:
        return (str(batch.id), batch.name, state, "", "", "", "", "", "")
    fraction = states.done_fraction(batch)
    end = None if batch.trouble is not None else states.expected_end(batch, now)
    return (
        str(batch.id),
        batch.name,
        state,
        (f"{fraction}", state[1]),
        words.percent(fraction),
        f"{batch.nover:,} of {batch.njobs:,}",
        (f"{batch.nerror_jobs:,}", "red") if batch.nerror_jobs else "",
        "" if end is None else _speed(batch, end - now),
        states.end_words(batch, now) if end is not None or batch.is_over else "",
    )


def _bar(cell: Cell, length: int) -> Cell:
    if isinstance(cell, str):
        return cell
    fraction, colour = cell
    return bar(float(fraction), length, sys.stdout), colour


def _speed(batch: Batch, left: float) -> str:
    """Return the rate of ending jobs, for a time span that people can picture."""
    per_second = (batch.njobs - batch.nover) / max(left, 1e-3)
    for seconds, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if per_second * seconds >= 1:
            return f"{per_second * seconds:,.0f}/{unit}"
    return f"{per_second * 86400:,.1f}/day"


def _ended(options: Namespace, batches: Sequence[Batch]) -> int:
    """Print how it ended, and useful next commands; return the exit status."""
    left = [batch for batch in batches if not batch.is_over]
    gone = [batch for batch in batches if batch.gone]
    for batch in left:
        trouble = "" if batch.trouble is None else f"; the last query failed: {batch.trouble}"
        complain(
            f"batch {batch.id} ({printable(batch.name)}) is not over after "
            f"{words.span(options.timeout)}: {batch.nover:,} of {words.count(batch.njobs, 'job')} "
            f"are; it continues on the project{trouble}"
        )
    for batch in gone:
        complain(
            f"the project {batch.project.host} does not know batch {batch.id} "
            f"({printable(batch.name)}) any more"
        )
    if not options.json:
        for batch in batches:
            if batch.is_over and not batch.gone:
                _say_end(options, batch)
    if gone:
        return FAILED
    return TIMED_OUT if left else _status(batches)


def _say_end(options: Namespace, batch: Batch) -> None:
    done = _done(batch)
    text, colour = states.batch_words(batch)
    head = f"Batch {batch.id} {printable(batch.name)} is {coloured(text, colour, sys.stdout)}"
    print(f"{head}: {done:,} of {words.count(batch.njobs, 'job')} done.")
    for line in reason_lines(options, batch):
        print(line)
    text = states.lease_warning(batch, words.now()) if batch.lease_is_over else ""
    if text:
        print(text)
    if done and batch.state is not BatchState.RETIRED:
        print(f"Its outputs: {command(options, 'fetch', batch.id)}")


def _done(batch: Batch) -> int:
    return max(0, batch.nover - batch.nerror_jobs)


def _status(batches: Sequence[Batch]) -> int:
    """Return the exit status for batches that are over."""
    aborted = [batch.state is BatchState.ABORTED for batch in batches]
    if all(_done(batch) == batch.njobs for batch in batches) and not any(aborted):
        return DONE
    nothing = [was or _done(batch) == 0 for was, batch in zip(aborted, batches, strict=True)]
    return ALL_FAILED if all(nothing) else SOME_FAILED
