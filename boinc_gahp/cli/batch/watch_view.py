"""The display of batches that are being watched: live on a terminal, lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch import states
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal import table, words
from boinc_gahp.terminal.output import bar, coloured
from boinc_gahp.terminal.table import Column
from boinc_gahp.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.terminal.table import Cell

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
_WIDE = 120
#: The most batches whose longest jobs are told about.
_TOLD = 3


class News:
    """Finds the batches that have changed since the last look."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._last: dict[int, object] = {}

    def changed(self) -> list[Batch]:
        """Return the batches that have changed since the last call."""
        found = []
        for batch in self._batches:
            trouble = None if batch.trouble is None else type(batch.trouble)
            numbers = (batch.njobs, batch.nover, batch.nerror_jobs, batch.latest_counts)
            seen = (batch.state, *numbers, batch.gone, trouble, batch.attempts)
            if self._last.get(batch.id) != seen:
                self._last[batch.id] = seen
                found.append(batch)
        return found


def line(batch: Batch, now: float) -> str:
    """Return a batch's news on one line."""
    from boinc_gahp.api.progress import counts_words, rest_words

    head = f"{words.at(now)}  batch {batch.id} {printable(batch.name)}: "
    if batch.trouble is not None and not batch.is_over:
        return f"{head}the project cannot be asked at present: {printable(str(batch.trouble))}"
    if batch.gone:
        return f"{head}the project no longer has it"
    text, _ = states.batch_words(batch)
    head += text
    if batch.state is not BatchState.INIT:
        head += f", {batch.nover:,} of {words.count(batch.njobs, 'job')} over"
    if not batch.is_over and batch.latest_counts is not None:
        head += f": {counts_words(batch)}"
    elif batch.nerror_jobs and batch.state is not BatchState.COMPLETE:
        head += f", {batch.nerror_jobs:,} {JobState.FAILED.value}"
    rest = rest_words(batch, states.expected_end(batch, now), now)
    return f"{head}; {rest}" if rest else head


class View:
    """The terminal's display while waiting."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._ended = False
        self._rows: list[tuple[bool, tuple[Cell, ...]]] = []
        self._troubles: list[str] = []
        self._told: list[str] = []
        self.update()

    def update(self) -> None:
        """Set what is known about the batches."""
        from boinc_gahp.api.progress import longest_words

        now = words.now()
        rows = [(batch.is_over, _row(batch, now)) for batch in self._batches]
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
        with self._lock:
            self._rows = rows
            self._troubles = list(troubles)
            self._told = told[:_TOLD]

    def end(self) -> None:
        """Remove what is useful only while waiting."""
        with self._lock:
            self._ended = True

    def lines(self, width: int) -> list[str]:
        """Return the lines for a terminal of this width; unfinished batches come first."""
        with self._lock:
            rows, troubles, told, ended = self._rows, self._troubles, self._told, self._ended
        room = max(1, shutil.get_terminal_size().lines - 5 - len(told))
        if len(rows) > room:
            rows = sorted(rows, key=lambda row: row[0])
        length = 20 if width >= _WIDE else 8
        cells = [(*row[:3], _bar(row[3], length), *row[4:]) for _, row in rows[:room]]
        lines = list(table.lines(_COLUMNS, cells, sys.stdout, width=width))
        if len(rows) > room:
            lines.append(f"… and {words.count(len(rows) - room, 'more batch', 'more batches')}")
        for trouble in troubles:
            lines.append(coloured(table.cut(trouble, width), "yellow", sys.stdout))
        if not ended:
            lines += [table.cut(text, width) for text in told]
            waited = words.span(time.monotonic() - self._begun)
            text = f"Waiting for {waited}. Ctrl-C ends the waiting, not the jobs."
            lines.append(coloured(table.cut(text, width), "faint", sys.stdout))
        return lines


def _row(batch: Batch, now: float) -> tuple[Cell, ...]:
    state = ("gone", "red") if batch.gone else states.batch_words(batch)
    if batch.state is BatchState.INIT:
        return (str(batch.id), batch.name, state, *[""] * 7)
    fraction = states.done_fraction(batch)
    counts = batch.latest_counts
    end = None if batch.trouble is not None else states.expected_end(batch, now)
    return (
        str(batch.id),
        batch.name,
        state,
        (f"{fraction}", state[1]),
        words.percent(fraction),
        _number(0 if counts is None else counts.queued),
        _number(0 if counts is None else counts.in_progress),
        _number(max(0, batch.nover - batch.nerror_jobs)),
        (f"{batch.nerror_jobs:,}", "red") if batch.nerror_jobs else "",
        states.end_words(batch, now) if end is not None or batch.is_over else "",
    )


def _number(number: int) -> str:
    return f"{number:,}" if number else ""


def _bar(cell: Cell, length: int) -> Cell:
    if isinstance(cell, str):
        return cell
    fraction, colour = cell
    return bar(float(fraction), length, sys.stdout), colour
