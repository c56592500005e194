"""Times, sizes and states in words, for people."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from boinc_gahp import states
from boinc_gahp.localproject.states import ERROR_WORDS, BatchState
from boinc_gahp.text import amount, show, size, span, visible

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


def lasting(since: float) -> str:
    """Return how long it has been going on: ``1 s``, ``3 min``."""
    return span(max(time.time() - since, 1))


def clock(then: float) -> str:
    """Return a time of this machine's clock: ``2026-03-01 14:05:09``."""
    return _local(then).strftime("%Y-%m-%d %H:%M:%S")


def iso(then: float) -> str:
    """Return a time in the format of ``<time datetime>``."""
    return _local(then).isoformat(timespec="seconds")


def _local(then: float) -> datetime:
    return datetime.fromtimestamp(min(max(then, 0), _YEAR_2100), timezone.utc).astimezone()


def speed(flops: float) -> str:
    """Return a number of operations a second in words."""
    return amount(flops, "FLOPS")


def credit(granted: float) -> str:
    """Return credit in words: two decimals, or a single digit if it is less than 0.01."""
    return f"{granted:,.2f}" if granted >= 0.01 or not granted else f"{granted:.1g}"


def thousands(number: float) -> str:
    """Return a whole number with separators: ``10,000``."""
    return f"{number:,.0f}"


def errors(mask: int) -> str:
    """Return the meaning of the bits of an error mask; empty for 0."""
    return ", ".join(states.ERROR_MEANINGS[word] for bit, word in ERROR_WORDS.items() if mask & bit)


def job_state(state: str) -> str:
    """Return the name of one of the states in :data:`.queries.STATES`."""
    return states.JobState[state.upper()].value


def batch_state(state: BatchState) -> str:
    """Return the name of a batch's state."""
    return states.BatchState[state.name].words


def readable(text: str) -> str:
    """Return text that a page can contain, line by line."""
    return visible(text, lambda character: character if character in "\n\t" else show(character))


FILTERS = {
    function.__name__: function
    for function in (
        duration,
        ago,
        lasting,
        clock,
        iso,
        size,
        credit,
        thousands,
        errors,
        job_state,
        batch_state,
        readable,
    )
}
