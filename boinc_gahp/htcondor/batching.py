"""Which waiting jobs go into a batch, and when; depends only on the ledger's rows and the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from boinc_gahp.ledger.jobs import Waiting

#: If a job's time of acceptance is more than this many seconds in the future, the clock was set
#: back.
_SKEW = 1.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """When a group is sent, and how much of it in one batch.

    Attributes:
        quiet: seconds without a new job.
        longest_wait: seconds that the oldest job waits at most.
        jobs: the most jobs in a batch.
        nbytes: the most bytes of jobs in a batch's request; a larger job goes alone.
        smaller: the same for some kinds of jobs, by their ``together``.
    """

    quiet: float
    longest_wait: float
    jobs: int
    nbytes: int
    smaller: Mapping[str, int] = field(default_factory=dict)


def ripe(
    waiting: Iterable[Waiting], now: float, bounds: Bounds
) -> tuple[list[list[Waiting]], float | None]:
    """Return the batches to make now, each a list of jobs, and when to look again.

    Args:
        waiting: the waiting jobs, oldest first.
        now: seconds since the epoch.
        bounds: the limits.

    Returns:
        The batches in the order of their oldest jobs' groups; a time, None if nothing else waits.
    """
    groups: dict[str, list[Waiting]] = {}
    for job in waiting:
        groups.setdefault(job.together, []).append(job)
    batches: list[list[Waiting]] = []
    times: list[float] = []
    for group in groups.values():
        *full, last = _split(group, bounds)
        batches += full
        at = _time_of(last, bounds)
        if len(last) >= bounds.jobs or at <= now or last[-1].accepted > now + _SKEW:
            batches.append(last)
        else:
            times.append(at)
    return batches, min(times, default=None)


def _time_of(jobs: Sequence[Waiting], bounds: Bounds) -> float:
    oldest = min(job.accepted for job in jobs)
    newest = max(job.accepted for job in jobs)
    return min(newest + bounds.quiet, oldest + bounds.longest_wait)


def _split(group: Sequence[Waiting], bounds: Bounds) -> Iterator[list[Waiting]]:
    batch: list[Waiting] = []
    nbytes = 0
    most = min(bounds.nbytes, bounds.smaller.get(group[0].together, bounds.nbytes))
    for job in group:
        if batch and (len(batch) >= bounds.jobs or nbytes + job.size > most):
            yield batch
            batch, nbytes = [], 0
        batch.append(job)
        nbytes += job.size
    yield batch
