"""The words of the page: times, numbers and states, for its templates."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from boinc_gahp.states import BatchState, JobState
from boinc_gahp.terminal.words import at, one_line, percent
from boinc_gahp.text import show, size, span, visible

if TYPE_CHECKING:
    from boinc_gahp.api.batch import Batch

#: The states of jobs, in the order in which they are shown; and what is only known not to be over.
KINDS = {
    "done": JobState.DONE.value,
    "failed": JobState.FAILED.value,
    "in_progress": JobState.IN_PROGRESS.value,
    "queued": JobState.QUEUED.value,
    "unknown": "not over",
}
_YEAR_2100 = 4_102_444_800


def duration(seconds: float) -> str:
    """Return a time span: ``0.25 s``, ``3 min``, ``2 days``."""
    return f"{seconds:.2g} s" if seconds < 10 else span(seconds)


def ago(then: float) -> str:
    """Return how far a time is from now: ``just now``, ``3 min ago``, ``in 2 h``."""
    away = time.time() - then
    if abs(away) < 2:
        return "just now"
    return f"{span(away)} ago" if away > 0 else f"in {span(-away)}"


def iso(then: float) -> str:
    """Return a time in the format of ``<time datetime>``."""
    local = datetime.fromtimestamp(min(max(then, 0), _YEAR_2100), timezone.utc).astimezone()
    return local.isoformat(timespec="seconds")


def readable(text: str) -> str:
    """Return text that a page can contain, line by line."""
    return visible(text, lambda character: character if character in "\n\t" else show(character))


def counts(batch: Batch) -> dict[str, int]:
    """Return how many of a batch's jobs are in each of :data:`KINDS`, without asking anybody."""
    known = batch.latest_counts
    if known is not None:
        return of_all({kind: getattr(known, kind) for kind in KINDS})
    failed = min(batch.nerror_jobs, batch.nover)
    left = batch.njobs - batch.nover
    return of_all({"done": batch.nover - failed, "failed": failed, "unknown": left})


def of_all(numbers: dict[str, int]) -> dict[str, int]:
    """Return numbers for all of :data:`KINDS`, and their sum as ``total``."""
    return {**dict.fromkeys(KINDS, 0), **numbers, "total": sum(numbers.values())}


def batch_state(batch: Batch) -> tuple[str, str]:
    """Return the look of a batch's state, and its words."""
    state, failed = batch.state, batch.nerror_jobs
    kinds = {BatchState.IN_PROGRESS: "in_progress", BatchState.COMPLETE: "done"}
    kinds |= {BatchState.ABORTED: "aborted"}
    if state is BatchState.COMPLETE and failed:
        return "failed", f"{state.words}, {failed:,} failed"
    return kinds.get(state, "queued"), state.words


FILTERS = {
    "ago": ago,
    "at": at,
    "batch_state": batch_state,
    "counts": counts,
    "duration": duration,
    "iso": iso,
    "one_line": one_line,
    "percent": percent,
    "readable": readable,
    "size": size,
    "span": span,
    "thousands": "{:,.0f}".format,
}
