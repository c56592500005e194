"""Live progress: lines redrawn on a terminal, plain lines now and then elsewhere.

For work that counts up to a total, use :class:`Work`::

    with Work() as work:
        work.show("staging", done=2, total=3)          # as often as you like, from any thread

On a terminal that shows ``staging  ━━━━━━━━━━━━━━      66%  2 of 3``, redrawn several times a
second and removed at the end; elsewhere a line ``staging 66%: 2 of 3``, at most every ``pause``
seconds. For other lines there is :class:`Live`.

Progress belongs on stderr if stdout has an answer that a program may read.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from boinc_gahp.terminal import words
from boinc_gahp.terminal.output import bar, coloured, in_lines, is_live, width_of
from boinc_gahp.terminal.table import cut
from boinc_gahp.text import span

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.live import Live as RichLive
    from typing_extensions import Self

#: Seconds between two plain lines.
PAUSE = 5.0

_BAR, _LEAST = 30, 6

#: The display that is being drawn now, if any: there is only one terminal.
_drawn: list[Live] = []
_PER_SECOND = 8


def remark(text: str) -> None:
    """Print a line on stderr, or above the live lines."""
    if _drawn:
        _drawn[-1].say(text)
    else:
        with suppress(OSError):
            print(in_lines(text, sys.stderr), file=sys.stderr, flush=True)


class Live:
    """Lines that are kept up to date on a terminal; a context manager, thread-safe.

    Args:
        lines: returns the lines to show, given the terminal's width; they may have colours. It is
            called several times a second, in a thread of its own, and must be quick.
        stream: where to draw; default: stdout.
        keep: whether the last lines stay on the screen.

    Attributes:
        is_live: whether anything is drawn at all; if not, only lines from say() are printed.
    """

    def __init__(
        self,
        lines: Callable[[int], list[str]],
        *,
        stream: TextIO | None = None,
        keep: bool = False,
    ) -> None:
        self.stream = sys.stdout if stream is None else stream
        self.is_live = is_live(self.stream)
        self._lines = lines
        self._keep = keep
        self._drawn: RichLive | None = None

    def __enter__(self) -> Self:
        if self.is_live:
            # Nothing else in the command line needs rich, which takes a while to import.
            from rich.console import Console
            from rich.live import Live as RichLive
            from rich.text import Text

            def drawn() -> Text:
                lines = self._lines(width_of(self.stream) or 80)
                return Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop", end="")

            self._drawn = RichLive(
                console=Console(file=self.stream, highlight=False),
                get_renderable=drawn,
                refresh_per_second=_PER_SECOND,
                transient=not self._keep,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._drawn.start()
            _drawn.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Draw for the last time."""
        if self._drawn is not None:
            _drawn.remove(self)
            self._drawn.stop()
            self._drawn = None

    def say(self, text: str) -> None:
        """Print a line that stays, above the live ones; it may have colours: use printable()."""
        if self._drawn is None:
            print(text, file=self.stream, flush=True)
        else:
            from rich.text import Text

            self._drawn.console.print(Text.from_ansi(text), soft_wrap=True)


class Work:
    """Progress of work with a total, or of several such steps in turn, on stderr.

    Args:
        quiet: whether to show nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._live = Live(self._lines, stream=sys.stderr)
        self._quiet = quiet
        self._lock = threading.Lock()
        self._now: tuple[str, float, float, str, bool] | None = None
        self._said = time.monotonic()
        self._begun: dict[str, float] = {}

    def __enter__(self) -> Self:
        if not self._quiet:
            self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the progress from the screen."""
        self._live.__exit__()

    def show(
        self, what: str, done: float, total: float, text: str | None = None, *, left: bool = True
    ) -> None:
        """Set the progress.

        Args:
            what: the step, in a word or two.
            done: how much of it is done.
            total: the whole; 0: unknown.
            text: the amount in words; None: ``2 of 3``.
            left: whether to tell how long the rest takes if it goes on like this.
        """
        if text is None:
            text = f"{done:,.0f} of {total:,.0f}" if total else f"{done:,.0f}"
        now = time.monotonic()
        with self._lock:
            self._now = (what, done, total, text, left)
            self._begun.setdefault(what, now)
            if self._quiet or self._live.is_live or now < self._said + PAUSE:
                return
            self._said = now
        part = f" {words.percent(done / total)}" if total else ""
        # Work goes on even if its progress cannot be shown.
        with suppress(OSError):
            self._live.say(f"{what}{part}: {text}")

    def _lines(self, width: int) -> list[str]:
        with self._lock:
            if self._now is None:
                return []
            what, done, total, text, is_even = self._now
            taken = time.monotonic() - self._begun[what]
        fraction = done / total if total else 0.0
        wide = min(_BAR, width - len(what) - len(text) - 24)
        # A shorter bar tells less than the percentage.
        shown = ""
        if wide >= _LEAST:
            shown = coloured(bar(fraction, wide, self._live.stream), "green", self._live.stream)
            shown += " "
        left = ""
        if is_even and 0 < fraction < 1 and taken > 2:
            left = f"  {span(taken / fraction - taken)} left"
        part = f"{words.percent(fraction):>4}" if total else ""
        return [f"{what}  {shown}{part}  {cut(text, max(1, width - len(what) - 8))}{left}"]
