"""When to try again what did not work."""

from __future__ import annotations

import random
import threading


class Patience:
    """Ever longer pauses between attempts; thread-safe. Times are seconds since the epoch.

    Args:
        shortest: the first pause, in seconds; each is twice as long as the one before.
        longest: the longest.
    """

    def __init__(self, shortest: float, longest: float) -> None:
        self._shortest = shortest
        self._longest = max(shortest, longest)
        self._lock = threading.Lock()
        self._failures = 0
        self._until = 0.0

    @property
    def until(self) -> float:
        """The time before which nothing is to be tried; 0 if all is well."""
        return self._until

    def failed(self, now: float) -> float:
        """Note that an attempt has failed; return the time of the next one."""
        with self._lock:
            pause = min(self._longest, self._shortest * 2.0 ** min(self._failures, 30))
            self._failures += 1
            # Many daemons may wait for one project: they must not come back all at once.
            self._until = now + pause * random.uniform(0.8, 1.2)  # noqa: S311  (no secret)
            return self._until

    def succeeded(self) -> bool:
        """Note that all is well; return whether it was not before."""
        with self._lock:
            before, self._failures, self._until = self._failures, 0, 0.0
            return before > 0
