"""When to repeat a failed attempt."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

from boinc_gahp.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.config.settings import HTCondor

#: Many daemons may wait for one project: they must not come back all at once.
_JITTER = (0.8, 1.2)


def is_ahead(at: float, now: float, longest: float) -> bool:
    """Tell whether ``at`` is in the future; times are in seconds since the epoch.

    A time further away than the longest pause does not count: it was written before the clock was
    set back.
    """
    return now < at <= now + longest


def drop_past(times: dict[int, float], now: float, longest: float) -> None:
    """Drop times that need no waiting any more; other threads may set times meanwhile."""
    for key, at in list(times.items()):
        if not is_ahead(at, now, longest):
            times.pop(key, None)


def going(now: float) -> Callable[[], float]:
    """Return a clock in seconds that starts at ``now``, and that cannot be set."""
    began = time.monotonic()
    return lambda: now + time.monotonic() - began


class FailureBackoff:
    """Ever longer pauses between attempts; thread-safe. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._since = -math.inf
        self._until = 0.0
        # The same by a clock that cannot be set.
        self._end = -math.inf

    @property
    def until(self) -> float:
        """The time before which nothing should be tried; 0 if all is well."""
        return self._until if time.monotonic() < self._end else min(self._until, time.time())

    @property
    def lasted(self) -> float:
        """Seconds since the first failure; 0 if all is well."""
        return time.monotonic() - self._since if self._failures else 0.0

    def failed(self, now: float, htcondor: HTCondor) -> float:
        """Note that an attempt has failed; return the time of the next one."""
        pauses = Backoff(htcondor.poll_shortest, htcondor.poll_longest, jitter=_JITTER)
        with self._lock:
            if not self._failures:
                self._since = time.monotonic()
            pause = pauses.seconds(self._failures)
            self._failures += 1
            self._until, self._end = now + pause, time.monotonic() + pause
            return self._until

    def succeeded(self) -> bool:
        """Note that all is well; return whether it was not before."""
        with self._lock:
            before, self._failures, self._until = self._failures, 0, 0.0
            return before > 0
