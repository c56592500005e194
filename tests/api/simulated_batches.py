"""Simulated batches: when their jobs begin and end, and what somebody who watches them sees."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from boinc_gahp.api.forecast import JobTimes
from boinc_gahp.rpc import BatchInfo, BatchState

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

NOW = 2_000_000_000.0
INFO = BatchInfo(
    id=1,
    name="b",
    app_name="a",
    state=BatchState.IN_PROGRESS,
    create_time=NOW,
    expire_time=0,
    est_completion_time=0,
    completion_time=0,
    njobs=100,
    nerror_jobs=0,
    fraction_done=0,
    credit_estimate=0,
    credit_canonical=0,
)


@dataclass(frozen=True)
class Kind:
    """A kind of batch; times are in units of what a job usually takes.

    Attributes:
        spread: the standard deviation of the logarithms of durations.
        stragglers: the part of the jobs that take 3 to 10 times as long.
        vanishing: the part of the jobs whose host vanishes, so that they begin again elsewhere
            after ``deadline``.
        at_once: how many jobs a host takes at a time, and works on in turn.
    """

    spread: float = 0.3
    stragglers: float = 0.0
    vanishing: float = 0.0
    deadline: float = 15.0
    at_once: int = 1

    def jobs(
        self, dice: random.Random, count: int, hosts: int, unit: float = 600.0
    ) -> list[tuple[float, float]]:
        """Return when each of ``count`` jobs begins and ends, in seconds."""
        free = [(2 * dice.random(), math.exp(dice.gauss(0, 0.3))) for _ in range(hosts)]
        heapq.heapify(free)
        found: list[tuple[float, float]] = []
        while len(found) < count:
            begin, speed = heapq.heappop(free)
            end = begin
            for _ in range(min(self.at_once, count - len(found))):
                again = speed * math.exp(dice.gauss(0, self.spread))
                slow = dice.uniform(3, 10) if dice.random() < self.stragglers else 1.0
                end += again * slow
                vanished = dice.random() < self.vanishing
                last = begin + self.deadline + again if vanished else end
                found.append((begin * unit, last * unit))
            heapq.heappush(free, (end, speed))
        return found


def looks(
    jobs: list[tuple[float, float]], pause: float = 20.0
) -> Iterator[tuple[float, BatchInfo, JobTimes]]:
    """Yield what polls of the batch see: the time since its creation, the batch, its jobs."""
    now, last = 0.0, max(end for _, end in jobs)
    while True:
        now += max(pause, now / 60)
        if now >= last:
            return
        durations = [end - begin for begin, end in jobs if end <= now]
        ages = [now - begin for begin, end in jobs if begin <= now < end]
        waiting = len(jobs) - len(durations) - len(ages)
        info = replace(INFO, njobs=len(jobs), fraction_done=len(durations) / len(jobs))
        yield now, info, JobTimes(waiting, durations, ages)
