"""What happened to a job, in order, as far as the project's records tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.localproject.states import Outcome, ValidateState
from boinc_gahp.localproject.web import words

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.web.job_queries import ShownInstance


@dataclass(frozen=True, slots=True)
class Event:
    """An event in a job's history; ``time`` 0: the time was not recorded."""

    time: float
    kind: str
    what: str
    instance: str = ""
    host: str = ""
    deadline: float = 0.0


def history(row: sqlite3.Row, state: str, instances: list[ShownInstance]) -> list[Event]:
    """Return what happened, in order. Events of the same time are in the order of the instances."""
    timed = [(float(row["create_time"]), Event(row["create_time"], "queued", "Job created"))]
    for number, one in enumerate(instances):
        later = _instance_history(row, one)
        if one.create_time > row["create_time"] or number >= row["target_nresults"]:
            event = Event(one.create_time, "queued", "Instance created", _short(row, one))
            made = _made(one.create_time, instances[:number])
            timed.append((min([made, *(each.time for each in later)]), event))
        timed += [(each.time, each) for each in later]
    canonical = next((one for one in instances if one.canonical), None)
    if canonical is not None:
        # The canonical instance is chosen when the quorum is there.
        agreed = sorted(
            _ended(one)
            for one in instances
            if one.canonical or one.it.validate_state is ValidateState.VALID
        )
        chosen = agreed[: max(int(row["min_quorum"]), 1)][-1]
        event = Event(0, "done", "Chosen as the canonical instance", _short(row, canonical))
        timed.append((chosen, event))
    timed.sort(key=lambda each: each[0])
    events = [event for _, event in timed]
    if canonical is None and state == "failed":
        events.append(Event(0, state, f"The job is over: {words.errors(row['error_mask'])}"))
    return events


def _made(second: float, before: list[ShownInstance]) -> float:
    """Return when an instance was made, of which the project records the second.

    It was made because one before it had failed, or because all before it did not agree.
    """
    over = [one for one in before if one.over]
    failed = [one for one in over if one.it.outcome is not Outcome.SUCCESS]
    ends = [end for end in map(_ended, failed or over) if second < end < second + 1]
    return (min if failed else max)(ends, default=second)


def _ended(one: ShownInstance) -> float:
    return one.it.received_time or one.it.report_deadline


def _instance_history(row: sqlite3.Row, one: ShownInstance) -> list[Event]:
    it, short = one.it, _short(row, one)
    events = []
    if it.sent_time:
        events.append(
            Event(it.sent_time, "in_progress", "Sent", short, one.host, it.report_deadline)
        )
    if it.received_time:
        what = f"Reported: {one.state}"
        events.append(Event(it.received_time, one.kind, what, short))
    elif one.over and it.sent_time:
        events.append(Event(_ended(one), one.kind, one.state, short))
    return events


def _short(row: sqlite3.Row, one: ShownInstance) -> str:
    """Return the suffix that an instance's name adds to its job's: ``_0``."""
    return one.it.name.removeprefix(row["name"]) or one.it.name
