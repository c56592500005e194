"""A clock of the day that runs faster than time, for the processes that a soak starts.

Only ``time.time`` runs fast: with it leases, deadlines, patience and what is kept for days. What
waits (locks, sockets, pauses) and ``time.monotonic`` keep real time, so that a request that takes
a second has a second's patience. libfaketime, which would do it from outside, does not know how
Python waits since 3.11 (``sem_clockwait``): with 0.9.10, ``Event.wait(0.2)`` at sixty times the
speed did not come back within 30 s; without its monotonic clock, ``time.sleep`` fails with EINVAL.
"""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """Time as the processes of one soak see it.

    Attributes:
        origin: when it began, in seconds since the epoch.
        speed: simulated seconds in a real one.
    """

    origin: float
    speed: float

    def install(self):
        """Let ``time.time`` of this process tell this time; to be done before anything else."""
        real = time.time

        def fast():
            return self.origin + (real() - self.origin) * self.speed

        time.time = fast

    @property
    def statements(self):
        """The Python statements that install it in a new process."""
        return (
            f"from tests.soak.clock import Clock; Clock({self.origin!r}, {self.speed!r}).install()"
        )
