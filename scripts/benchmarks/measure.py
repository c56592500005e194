"""What a benchmark returns."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MB = 1_000_000.0


@dataclass(frozen=True)
class Measure:
    """One number.

    Attributes:
        label: what was measured.
        value: how much.
        unit: s, MB, or 1/s (where more is better).
        aim: the largest good value (for 1/s, the smallest), or None.
    """

    label: str
    value: float
    unit: str
    aim: float | None = None

    @property
    def missed(self) -> bool:
        """Whether there is an aim, and the number is on the wrong side of it."""
        if self.aim is None:
            return False
        return self.value < self.aim if self.unit == "1/s" else self.value > self.aim


@dataclass
class Sample:
    """What one run of a case took.

    Attributes:
        seconds: from its beginning to its end.
        processor: seconds of processor time of the program, user and system.
        peak_memory: of the program (VmHWM), in bytes.
        rpcs: numbers of requests that the stand-in answered, by RPC.
        syncs: calls of os.fsync and os.fdatasync; None if the program cannot count them.
        parts: seconds of parts of it, or of what came after it, by label.
    """

    seconds: float = 0.0
    processor: float = 0.0
    peak_memory: float = 0.0
    rpcs: dict[str, int] = field(default_factory=dict)
    syncs: int | None = None
    parts: dict[str, float] = field(default_factory=dict)


def median(samples: Sequence[Sample]) -> Sample:
    """Return the median of each number; the RPCs are those of the run with the median of them."""
    syncs = [sample.syncs for sample in samples if sample.syncs is not None]
    return Sample(
        statistics.median(sample.seconds for sample in samples),
        statistics.median(sample.processor for sample in samples),
        statistics.median(sample.peak_memory for sample in samples),
        sorted((sample.rpcs for sample in samples), key=_total)[len(samples) // 2],
        statistics.median_low(syncs) if syncs else None,
        {
            label: statistics.median(sample.parts[label] for sample in samples)
            for label in samples[0].parts
        },
    )


def _total(rpcs: dict[str, int]) -> int:
    return sum(rpcs.values())


def spread(values: Sequence[float]) -> float:
    """Return how far apart values are: the largest less the smallest, over the median."""
    return (max(values) - min(values)) / statistics.median(values)
