"""When a batch's jobs ended, as far as the project knows."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.localproject.states import BatchState, ErrorMask, Outcome

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boinc_gahp.localproject.web.queries import ShownBatch

#: Steps of the curve.
_STEPS = 60
#: The curve's picture: x and y go from 0 to these.
_WIDTH, _HEIGHT = 100.0, 20.0

# A job ends when the result is received that decides about it, and a failed one when its last
# result is, or is given up. When a job was aborted is not recorded.
_ENDS = f"""
SELECT r.received_time AS ended, 0 AS failed, w.batch
FROM workunit w CROSS JOIN result r ON r.id = w.canonical_resultid WHERE w.batch IN ({{0}})
UNION ALL
SELECT max(CASE WHEN r.received_time > 0 THEN r.received_time
                WHEN r.outcome = {Outcome.NO_REPLY:d} THEN r.report_deadline ELSE 0 END),
       1, w.batch
FROM workunit w CROSS JOIN result r ON r.workunitid = w.id
WHERE w.batch IN ({{0}}) AND w.canonical_resultid = 0 AND w.error_mask != 0
  AND NOT w.error_mask & {ErrorMask.CANCELLED:d}
GROUP BY w.id
"""  # noqa: S608


def ends(connection: sqlite3.Connection, batches: Iterable[ShownBatch]) -> dict[int, float]:
    """Return when each batch ended, by its id; those that have not are left out."""
    over = [batch for batch in batches if not batch.open]
    marks = ", ".join("?" * len(over))
    last = {
        row["batch"]: row["ended"]
        for row in connection.execute(
            f"SELECT batch, max(ended) AS ended FROM ({_ENDS.format(marks)}) "  # noqa: S608
            "WHERE ended > 0 GROUP BY batch",
            2 * [batch.id for batch in over],
        )
    }
    found = {batch.id: _ended(batch, last.get(batch.id, 0.0)) for batch in over}
    return {batch_id: ended for batch_id, ended in found.items() if ended}


def _ended(batch: ShownBatch, last: float) -> float:
    """Return when a batch that is over ended; ``last``: its last job, as far as is known."""
    was_aborted = batch.state is BatchState.ABORTED
    return batch.completion_time or last if was_aborted else last or batch.completion_time


@dataclass(frozen=True, slots=True)
class Timeline:
    """How many jobs of a batch had ended at which time.

    Attributes:
        begin: when the batch was created.
        until: the curve's right end: now, or when the last job ended.
        ended: when the last job of a batch that is over ended; 0: this is not known.
        done, failed: the curves' outlines for ``<polygon points>``, in a box of 100 x 20.
    """

    begin: float
    until: float
    ended: float
    done: str
    failed: str


def timeline(connection: sqlite3.Connection, batch: ShownBatch) -> Timeline | None:
    """Return a batch's timeline; None if it has none, as jobs without a batch."""
    if not batch.id or not batch.jobs.total:
        return None
    known = sorted(
        (row["ended"], row["failed"])
        for row in connection.execute(_ENDS.format("?"), (batch.id, batch.id))
        if row["ended"] > 0
    )
    times = [each[0] for each in known]
    is_over = batch.jobs.ended == batch.jobs.total or not batch.open
    last = times[-1] if times else 0.0
    ended = _ended(batch, last) if is_over else 0.0
    until = ended or max(time.time(), last)
    begin = min([batch.create_time, *times[:1]])
    right = max(until, begin + 1)
    failed_times = [each[0] for each in known if each[1]]

    def point(moment: float, number: float) -> str:
        x = _WIDTH * (moment - begin) / (right - begin)
        return f"{x:.2f},{_HEIGHT * (1 - number / batch.jobs.total):.2f}"

    moments = [begin + (until - begin) * step / _STEPS for step in range(_STEPS + 1)]
    lower = [bisect_right(failed_times, moment) for moment in moments]
    upper = [bisect_right(times, moment) for moment in moments]
    base = [point(moments[-1], 0), point(begin, 0)]
    below = [point(*each) for each in zip(moments, lower, strict=True)]
    above = [point(*each) for each in zip(moments, upper, strict=True)]
    return Timeline(
        begin=begin,
        until=until,
        ended=ended,
        done=" ".join([*above, *base]) if times else "",
        failed=" ".join([*below, *base]) if failed_times else "",
    )
