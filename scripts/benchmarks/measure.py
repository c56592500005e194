"""What a benchmark returns."""

from __future__ import annotations

from dataclasses import dataclass

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
