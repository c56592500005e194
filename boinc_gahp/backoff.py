"""Growing pauses between attempts: one rule, with each user's numbers as data."""

from __future__ import annotations

import math
import random
import threading
import time
from dataclasses import dataclass

#: Pauses grow at most so many times, which keeps the numbers small.
_STEPS = 60
#: Our own generator, because programs may seed Python's.
_LOT = random.Random()  # noqa: S311  (no secret)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before something is tried again. Times are seconds.

    Each pause is ``factor`` times as long as the one before, up to ``longest``. The pauses are then
    varied at random, so that clients that began together do not come back together.

    Attributes:
        first: the first pause.
        longest: the longest pause, before jitter; if less than ``first``, all pauses are ``first``.
        factor: at least 1.
        jitter: the smallest and the largest factor by which a pause is varied.
    """

    first: float
    longest: float = math.inf
    factor: float = 2.0
    jitter: tuple[float, float] = (1.0, 1.0)

    def seconds(self, failures: int) -> float:
        """Return the pause after an attempt that ``failures`` other failures preceded; from 0."""
        grown = self.first * self.factor ** min(failures, _STEPS)
        return self.jittered(min(grown, max(self.first, self.longest)))

    def after(self, pause: float) -> float:
        """Return the pause after ``pause``, without jitter: for callers that also shrink it."""
        return min(max(self.first, pause * self.factor), max(self.first, self.longest))

    def jittered(self, pause: float) -> float:
        """Return ``pause``, varied at random."""
        return pause * _LOT.uniform(*self.jitter)

    def wait(
        self, failures: int, *, stop: threading.Event | None = None, until: float | None = None
    ) -> bool:
        """Wait for :meth:`seconds`; return whether to continue: not if ``stop`` is set.

        Args:
            failures: see :meth:`seconds`.
            stop: ends the pause when it is set.
            until: a time of ``time.monotonic()`` that the pause does not go beyond.
        """
        pause = self.seconds(failures)
        if until is not None:
            pause = max(0.0, min(pause, until - time.monotonic()))
        return not (stop or threading.Event()).wait(pause)
