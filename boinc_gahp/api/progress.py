"""Shows progress where somebody looks: on a terminal, or in a notebook; nothing in a pipe.

Methods of the API that take ``progress`` also take True: then a terminal shows a live line on
stderr, and a notebook a bar below the cell. The words are those of ``boinc_gahp batch``.
"""

from __future__ import annotations

import html
import math
import sys
import time
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from boinc_gahp.errors import BadRequest
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal import words
from boinc_gahp.terminal.live import Work
from boinc_gahp.terminal.output import is_live
from boinc_gahp.text import count, printable, size, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.errors import GahpError
    from boinc_gahp.submit.types import Progress

_STEPS = {
    "reading": "reading files",
    "staging": "sending files",
    "submitting": "sending jobs",
}
#: States in which people know jobs.
_TOLD = [state for state in JobState if state is not JobState.UNKNOWN]
#: Seconds between two updates of a notebook.
_PAUSE = 0.25
#: A job that has run for fewer seconds is not told about.
_LONG = 60.0
#: The most columns for a batch's name.
_NAME = 24


_Report = TypeVar("_Report", bound="Callable[..., object]")


class Show(Protocol):
    """Sets what a display shows; see :meth:`boinc_gahp.terminal.live.Work.show`."""

    def __call__(  # noqa: D102
        self, what: str, done: float, total: float, text: str | None = None, *, left: bool = True
    ) -> None: ...


class StepView:
    """Shows each :class:`Progress` of a submit or a fetch.

    Args:
        show: sets what the display shows.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self._begun = time.monotonic()
        self._jobs = (0, 0)
        self._bytes = 0

    def __call__(self, progress: Progress) -> None:
        """Show it."""
        if progress.step == "fetching":
            self._fetched(progress)
            return
        amount = size if progress.unit == "bytes" else "{:,}".format
        unit = "" if progress.unit == "bytes" else f" {progress.unit}"
        self._show(
            _STEPS.get(progress.step, progress.step),
            progress.done,
            progress.total,
            f"{amount(progress.done)} of {amount(progress.total)}{unit}",
        )

    def _fetched(self, progress: Progress) -> None:
        """Show jobs and bytes, which are reported in turn, together."""
        if progress.unit == "bytes":
            self._bytes = progress.done
        else:
            self._jobs = progress.done, progress.total
        done, total = self._jobs
        taken = time.monotonic() - self._begun
        text = f"{done:,} of {count(total, 'job')}"
        if self._bytes:
            text += f", {size(self._bytes)}, {size(self._bytes / max(taken, 0.1))}/s"
        self._show("fetching", done, total, text)


@contextmanager
def shown(
    progress: _Report | bool | None, view: Callable[[Show], _Report]
) -> Iterator[_Report | None]:
    """Give the function that takes the progress; None: nobody wants it.

    Args:
        progress: such a function; True: the progress is shown until the context ends.
        view: makes the function that shows it.

    Raises:
        BadRequest: ``progress`` is neither.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _display() as show:
            yield None if show is None else view(show)
    elif callable(progress):
        yield progress
    else:
        raise BadRequest(f"progress is {progress!r}: expected True or a function")


def waiting_view(show: Show) -> Callable[[KnownBatch], None]:
    """Return what shows a batch."""

    def report(batch: KnownBatch) -> None:
        show(_called(batch), batch.nover, batch.njobs, news(batch), left=False)

    return report


def show_results(show: Show, batch: KnownBatch, here: int, trouble: GahpError | None) -> None:
    """Show how many results of a batch are here, and why no more can be fetched."""
    told = f"{here:,} here; {news(batch)}"
    if batch.is_over and trouble is not None:
        told += f"; results cannot be fetched: {printable(str(trouble))}"
    show(_called(batch), here, batch.njobs, told, left=False)


def _called(batch: KnownBatch) -> str:
    """Return a batch's name, without its middle if it is long."""
    name = printable(batch.name)
    return name if len(name) <= _NAME else f"{name[: _NAME // 2]}…{name[1 - _NAME // 2 :]}"


def news(batch: KnownBatch) -> str:
    """Return on one line how far a batch is, and when it may be over."""
    if batch.gone:
        return "the project no longer has it"
    if batch.trouble is not None and not batch.is_over:
        return f"the project cannot be asked at present: {printable(str(batch.trouble))}"
    counts = counts_words(batch)
    told = counts
    if batch.state is not BatchState.IN_PROGRESS:
        told = f"{batch.state.words}: {counts}" if counts else batch.state.words
    rest = rest_words(batch, batch.expected_end, time.time())
    return f"{told}; {rest}" if rest else told


def counts_words(batch: KnownBatch) -> str:
    """Return how many jobs of a batch are in which state, as far as that is known.

    ``12 waiting, 64 running, 120 done, 4 failed``; empty while the batch is being made.
    """
    if batch.state is BatchState.INIT:
        return ""
    counts = batch.latest_counts
    if counts is None:
        over = f"{batch.nover:,} of {count(batch.njobs, 'job')} over"
        failed = f", {batch.nerror_jobs:,} {JobState.FAILED.value}"
        return over + (failed if batch.nerror_jobs else "")
    numbers = {state: getattr(counts, state.name.lower()) for state in JobState}
    return ", ".join(f"{numbers[state]:,} {state.value}" for state in _TOLD if numbers[state])


def rest_words(batch: KnownBatch, end: float | None, now: float) -> str:
    """Return when a batch would be over at its recent rate, and its longest job; empty: unknown.

    ``at the recent rate: about 2 h more; one job has run for 40 min or more``. The job is told once
    no job waits: then it may decide when the batch is over.
    """
    rate = "" if end is None else f"at the recent rate: {words.ahead(end, now)}"
    words_ = (rate, longest_words(batch), batch.attempts)
    return "" if batch.is_over else "; ".join(filter(None, words_))


def longest_words(batch: KnownBatch) -> str:
    """Return how long the longest job of a batch has run, if no job waits; empty: not known."""
    counts, longest = batch.latest_counts, batch.longest_running
    if counts is None or counts.queued or longest is None or longest < _LONG:
        return ""
    return f"one job has run for {span(longest)} or more"


@contextmanager
def _display() -> Iterator[Show | None]:
    """Give what shows progress where somebody looks; None: nobody does."""
    if _kernel_runs():
        notebook = _Notebook()
        try:
            yield notebook.show
        finally:
            notebook.end()
    elif is_live(sys.stderr):
        with Work() as work:
            yield work.show
    else:
        yield None


def _kernel_runs() -> bool:
    """Tell whether this runs in a notebook's kernel, which shows HTML."""
    # Whoever runs in IPython has imported it.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class _Notebook:
    """A bar and a line below a notebook's cell, updated a few times a second."""

    def __init__(self) -> None:
        self._display: Any = import_module("IPython.display")
        self._handle: Any = None
        self._drawn = -math.inf
        self._waiting: str | None = None

    def show(
        self, what: str, done: float, total: float, text: str | None = None, *, left: bool = True
    ) -> None:
        """Set the progress."""
        del left  # the text says it, or nobody knows
        fraction = min(1.0, done / total) if total else 0.0
        told = f"{done:,.0f}" if text is None else text
        part = f" {words.percent(fraction)}" if total else ""
        self._waiting = (
            f'<div><progress max="1" value="{fraction:.4f}"></progress>'
            f"{part} <b>{html.escape(what)}</b> {html.escape(told)}</div>"
        )
        if time.monotonic() >= self._drawn + _PAUSE:
            self._draw()

    def end(self) -> None:
        """Show the last progress; it stays."""
        self._draw()

    def _draw(self) -> None:
        if self._waiting is None:
            return
        shown = self._display.HTML(self._waiting)
        self._waiting = None
        self._drawn = time.monotonic()
        if self._handle is None:
            self._handle = self._display.display(shown, display_id=True)
        else:
            self._handle.update(shown)
