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
    """An event in a job's history; ``time`` 0: the time was not recorded.

    ``ends``: whether it is the end of an instance.
    """

    time: float
    kind: str
    what: str
    instance: str = ""
    host: str = ""
    deadline: float = 0.0
    ends: bool = False


def history(row: sqlite3.Row, state: str, instances: list[ShownInstance]) -> list[Event]:
    """Return what happened, in order. Events of the same time are in the order of the instances."""
    timed = [(float(row["create_time"]), Event(row["create_time"], "queued", "Job created"))]
    for number, one in enumerate(instances):
        later = _instance_history(row, one)
        if one.create_time > row["create_time"] or number >= row["target_nresults"]:
            made = _made(row, number, instances, one.create_time)
            event = Event(one.create_time, "queued", "Instance created", _short(row, one))
            timed.append((min([made, *(each.time for each in later)]), event))
        timed += [(each.time, each) for each in later]
    timed.sort(key=lambda each: each[0])
    events = [event for _, event in timed]
    canonical = next((one for one in instances if one.canonical), None)
    if canonical is not None:
        place = _place_of_choice(row, events, instances, canonical)
        short = _short(row, canonical)
        events.insert(place, Event(0, "done", "Chosen as the canonical instance", short))
    elif state == "failed":
        events.append(Event(0, state, f"The job is over: {words.errors(row['error_mask'])}"))
    return events


def _made(row: sqlite3.Row, number: int, instances: list[ShownInstance], second: float) -> float:
    """Return when an instance was made, at the earliest; the project records the second.

    An instance beyond the first ones is made because another has failed, or because those that
    there are do not agree.
    """
    over = [(_ended(one), one.it.outcome) for one in instances[:number] if one.over]
    every = sorted(end for end, _ in over)
    bad = sorted(end for end, outcome in over if outcome is not Outcome.SUCCESS)
    more = number - int(row["target_nresults"])
    cause = next(
        (
            some[place]
            for some, place in ((bad, more), (every, number - 1))
            if 0 <= place < len(some)
        ),
        0.0,
    )
    return cause if second < cause < second + 1 else second


def _ended(one: ShownInstance) -> float:
    return one.it.received_time or one.it.report_deadline


def _place_of_choice(
    row: sqlite3.Row, events: list[Event], instances: list[ShownInstance], canonical: ShownInstance
) -> int:
    """Return after how many events the canonical instance was chosen: when the quorum was there."""
    valid = [_short(row, one) for one in instances if one.it.validate_state is ValidateState.VALID]
    reports = [
        place
        for place, event in enumerate(events)
        if event.ends and event.instance in (*valid, _short(row, canonical))
    ]
    if not reports:
        return len(events)
    quorum = max(int(row["min_quorum"]), 1)
    return reports[min(quorum, len(reports)) - 1] + 1


def _instance_history(row: sqlite3.Row, one: ShownInstance) -> list[Event]:
    it, short = one.it, _short(row, one)
    events = []
    if it.sent_time:
        events.append(
            Event(it.sent_time, "in_progress", "Sent", short, one.host, it.report_deadline)
        )
    if it.received_time:
        what = f"Reported: {one.state}"
        events.append(Event(it.received_time, one.kind, what, short, ends=True))
    elif one.over and it.sent_time:
        events.append(Event(_ended(one), one.kind, one.state, short, ends=True))
    return events


def _short(row: sqlite3.Row, one: ShownInstance) -> str:
    """Return the suffix that an instance's name adds to its job's: ``_0``."""
    return one.it.name.removeprefix(row["name"]) or one.it.name
