"""When a batch would be over if its jobs went on ending as they did recently.

This promises nothing: the last jobs of a batch often run on slow computers, and a job whose
volunteer has vanished is only sent again after its deadline.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from boinc_gahp.states import BatchState

if TYPE_CHECKING:
    from boinc_gahp.rpc.types import BatchInfo

#: How many samples of progress are kept.
_SAMPLES = 200
#: The rate is that of this part of the progress, the latest.
_RECENT = 0.25
_TOO_FAR = 10 * 365 * 86400.0


class Forecast:
    """The end of a batch at its recent rate: that of the latest quarter of its progress.

    So a slow start is soon forgotten. While no job ends, the rate falls, and the end moves away.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, float]] = deque(maxlen=_SAMPLES)
        self._end: float | None = None

    @property
    def end(self) -> float | None:
        """Seconds since the epoch; None: no job has ended yet, or the batch is not in progress."""
        return self._end

    def see(self, info: BatchInfo, now: float | None = None) -> None:
        """Take the project's answer about a batch.

        Args:
            info: the answer.
            now: when it came, in seconds since the epoch; None: now, by this machine's clock.
        """
        with self._lock:
            self._end = self._at_this_rate(info, time.time() if now is None else now)

    def _at_this_rate(self, info: BatchInfo, now: float) -> float | None:
        if info.state is not BatchState.IN_PROGRESS:
            return None
        fraction = min(1.0, info.fraction_done)
        if not self._seen:
            # All of the progress was made since its creation, if the two clocks agree well enough.
            self._seen.append((min(info.create_time, now), 0.0))
        if fraction != self._seen[-1][1]:
            self._seen.append((now, fraction))
        since, before = next(
            (seen for seen in reversed(self._seen) if seen[1] <= (1 - _RECENT) * fraction),
            self._seen[0],
        )
        done, took = fraction - before, now - since
        if done <= 0 or took <= 0:
            return None
        left = (1 - fraction) / done * took
        return now + left if left < _TOO_FAR else None
