"""What the demo shows while it runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from boinc_gahp.cli.terminal import is_live

if TYPE_CHECKING:
    from types import TracebackType

_STYLES = {
    "queued": "dim",
    "in progress": "yellow",
    "done": "cyan",
    "right": "bold green",
    "failed": "bold red",
    "wrong": "bold red",
}
_COLUMNS = 2
#: Seconds between two plain lines.
_PAUSE = 0.5


class View:
    """Shows the jobs' states; a context manager."""

    def __init__(self, jobs: list[str]) -> None:
        self._states = dict.fromkeys(jobs, "")
        self._begun = time.monotonic()
        self._line = ""
        self._said = ("", -_PAUSE)
        self._stack = ExitStack()
        self._live: Live | None = None
        if is_live(sys.stdout):
            self._live = Live(console=Console(), get_renderable=self._table, refresh_per_second=8)

    def __enter__(self) -> View:
        if self._live is not None:
            self._stack.enter_context(self._live)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the last state on the screen."""
        self._stack.close()
        self._say_counts(0)

    def say(self, text: str) -> None:
        """Print a line, above the table."""
        if self._live is not None:
            self._live.console.print(Text(text), soft_wrap=True)
        else:
            print(text, flush=True)

    def show(self, states: dict[str, str]) -> None:
        """Show the states of jobs, of some or all."""
        self._states.update(states)
        counts = Counter(state for state in self._states.values() if state)
        self._line = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        self._say_counts(_PAUSE)

    def _say_counts(self, pause: float) -> None:
        """Print the counts, where there is no table, if they are new and it is time."""
        line, at = self._said
        now = time.monotonic() - self._begun
        if self._live is None and line != self._line and now >= at + pause:
            self._said = (self._line, now)
            self.say(f"{now:5.1f} s  {self._line}")

    def _table(self) -> Table:
        table = Table(caption=f"{time.monotonic() - self._begun:.1f} s  {self._line}")
        for _ in range(_COLUMNS):
            table.add_column("job", no_wrap=True)
            table.add_column("state", min_width=len("in progress"), no_wrap=True)
        items = list(self._states.items())
        rows = -(-len(items) // _COLUMNS)
        for row in range(rows):
            cells = []
            for job, state in items[row::rows]:
                cells += [Text(job), Text(state, style=_STYLES.get(state, ""))]
            table.add_row(*cells)
        return table
