"""The demo's display while it runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from boinc_gahp.states import JobState
from boinc_gahp.terminal import Column, Live, table

if TYPE_CHECKING:
    from types import TracebackType

_COLOURS = {
    JobState.QUEUED.value: "faint",
    JobState.IN_PROGRESS.value: "yellow",
    "done": "cyan",
    "right": "green",
    "failed": "red",
    "wrong": "red",
}
#: Jobs per line.
_BESIDE = 2
_COLUMNS = [Column("job"), Column("state")] * _BESIDE
_WIDEST = max(map(len, _COLOURS))
#: Seconds between two plain lines.
_PAUSE = 0.5


class View:
    """Shows the jobs' states; a context manager."""

    def __init__(self, jobs: list[str]) -> None:
        self._states = dict.fromkeys(jobs, "")
        self._begun = time.monotonic()
        self._line = ""
        self._shown = ("", -_PAUSE)
        self._live = Live(self._lines, keep=True)

    def __enter__(self) -> View:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the last state on the screen."""
        self._live.__exit__(kind, value, traceback)
        self._say_counts(0)

    def say(self, text: str) -> None:
        """Print a line, above the table."""
        self._live.say(text)

    def show(self, states: dict[str, str]) -> None:
        """Show the states of some or all jobs."""
        self._states.update(states)
        counts = Counter(state for state in self._states.values() if state)
        self._line = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        self._say_counts(_PAUSE)

    def _say_counts(self, pause: float) -> None:
        """Without a table, print the counts if they are new and it is time."""
        line, at = self._shown
        now = time.monotonic() - self._begun
        if not self._live.is_live and line != self._line and now >= at + pause:
            self._shown = (self._line, now)
            self.say(f"{now:5.1f} s  {self._line}")

    def _lines(self, width: int) -> list[str]:
        items = list(self._states.items())
        rows = -(-len(items) // _BESIDE)
        cells = []
        for row in range(rows):
            # As wide as the widest state, so that nothing moves when states change.
            beside = [
                (job, (f"{state:<{_WIDEST}}", _COLOURS.get(state, "bold")))
                for job, state in items[row::rows]
            ]
            beside += [("", ("", ""))] * (_BESIDE - len(beside))
            cells.append([cell for pair in beside for cell in pair])
        shown = list(table.lines(_COLUMNS, cells, sys.stdout, width=width))
        return [*shown, f"{time.monotonic() - self._begun:.1f} s  {self._line}"]
