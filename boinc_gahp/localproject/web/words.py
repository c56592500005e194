"""Times, sizes and states in words, for people."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from boinc_gahp import states
from boinc_gahp.localproject.states import ERROR_WORDS, AssimilateState, BatchState, FileDeleteState
from boinc_gahp.text import amount, count, show, size, span, visible

#: Seconds of each unit of time.
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_YEAR_2100 = 4_102_444_800

#: The state of a job's or an instance's files; if they have ``no_delete``, the file deleter leaves
#: them in place and is done.
DELETIONS = {
    FileDeleteState.INIT: "not yet",
    FileDeleteState.READY: "due",
    FileDeleteState.DONE: "done, except files with no_delete",
    FileDeleteState.ERROR: "failed",
}
ASSIMILATIONS = {
    AssimilateState.INIT: "not yet",
    AssimilateState.READY: "due",
    AssimilateState.DONE: "done",
}


def duration(seconds: float) -> str:
    """Return a time span with its two largest units: ``850 ms``, ``3 min 20 s``, ``2 d 4 h``."""
    if seconds < 0.001:
        return "under 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    rest = round(seconds)
    parts: list[str] = []
    for unit, name in _UNITS:
        if rest >= unit:
            parts.append(f"{rest // unit:,} {name}")
            rest %= unit
        elif parts:
            break
    return " ".join(parts[:2])


def ago(then: float, now: float | None = None) -> str:
    """Return how far a time is from now: ``just now``, ``3 min ago``, ``in 2 h``."""
    away = (time.time() if now is None else now) - then
    if abs(away) < 2:
        return "just now"
    return f"{span(away)} ago" if away > 0 else f"in {span(-away)}"


def lasting(since: float, now: float | None = None) -> str:
    """Return how long it has been going on: ``1 s``, ``3 min``."""
    return span(max((time.time() if now is None else now) - since, 1))


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


def deletion(state: int) -> str:
    """Return the meaning of a file_delete_state."""
    return DELETIONS[FileDeleteState(state)]


def assimilation(state: int) -> str:
    """Return the meaning of an assimilate_state."""
    return ASSIMILATIONS[AssimilateState(state)]


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
        speed,
        credit,
        thousands,
        count,
        errors,
        job_state,
        batch_state,
        deletion,
        assimilation,
        readable,
    )
}
