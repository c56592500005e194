"""Estimates when a batch will be over, from how long its own jobs took.

While jobs wait, the rate at which jobs end decides; then the last of those that run are waited for.
How long these take is estimated from the batch's own jobs: a log-normal distribution is fitted to
the durations seen so far, in which a job that still runs counts as one that takes longer than it
has run (maximum likelihood for censored data). A small part of the jobs may be stragglers, so that
a job which runs longer than any other is not expected to end at any moment.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from boinc_gahp.states import BatchState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp import rpc

#: How many samples of progress are kept, and how many durations and ages are looked at.
_SAMPLES = 200
_AT_MOST = 400
_SOON, _TOO_FAR = 1e-3, 10 * 365 * 86400.0
#: Fewer durations tell little; then durations are spread as those of most programs on volunteers'
#: computers, which differ in speed.
_ENOUGH = 5
_USUAL_SPREAD = 0.5
_LEAST_SPREAD, _LARGEST_SPREAD = 0.05, 3.0
#: Durations from which the slowest jobs are reported, and how slow they must be.
_MANY = 40
_SLOW = 2.0
#: The last job ends before the estimated time as often as after it: then this number of jobs are
#: expected to run, since the number of rare events is a Poisson distribution's.
_LAST = math.log(2)
#: The progress from which on jobs of which nothing is known may be the last ones.
_LATE = 0.8
#: So many terms of a harmonic sum are added; the rest is a logarithm to a thousandth.
_EXACT = 1000
#: How often the fit is improved, from the last one.
_STEPS = 25

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class JobTimes:
    """What is known about how long a batch's jobs take, as one poll found it.

    Attributes:
        waiting: how many jobs no volunteer has yet.
        durations: seconds from start to end of jobs that are over, as far as they were seen.
        ages: seconds since the start of each job that runs.
    """

    waiting: int
    durations: Sequence[float]
    ages: Sequence[float]


class Forecast:
    """Estimates when a batch will be over, from its progress so far.

    While jobs wait for volunteers, the speed is that of the latest quarter of the progress, so a
    slow start is soon forgotten; it falls while nothing happens. When all jobs that are not over
    run, their end is estimated from the durations of this batch's other jobs. If nothing is known
    about single jobs, the speed decides, too; in the last fifth, if it has fallen to half of its
    maximum, the jobs that are left are taken to run, and each to end at any moment with the same
    probability.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: deque[tuple[float, float]] = deque(maxlen=_SAMPLES)
        self._fastest = 0.0
        self._fit: _Fit | None = None
        self._end: float | None = None
        self._slowest: float | None = None

    @property
    def end(self) -> float | None:
        """Seconds since the epoch; None if it cannot be estimated."""
        return self._end

    @property
    def slowest(self) -> float | None:
        """How many times as long as usual the slowest 5 in 100 of the jobs take.

        None if too few are over to tell, or if it is less than twice.
        """
        return self._slowest

    def see(
        self, info: rpc.BatchInfo, now: float | None = None, times: JobTimes | None = None
    ) -> None:
        """Take the project's answer about a batch.

        Args:
            info: the answer.
            now: when it came, in seconds since the epoch; None: now, by this machine's clock.
            times: what is known about single jobs; None: nothing.
        """
        with self._lock:
            now = time.time() if now is None else now
            self._end = self._estimated(info, now, times)

    def _estimated(self, info: rpc.BatchInfo, now: float, times: JobTimes | None) -> float | None:
        if info.state is not BatchState.IN_PROGRESS:
            return None
        left = self._left(info, now, times)
        if left is not None:
            return now + left if left < _TOO_FAR else None
        return info.est_completion_time if info.est_completion_time > now else None

    def _left(self, info: rpc.BatchInfo, now: float, times: JobTimes | None) -> float | None:
        """Return in how many seconds the last job ends."""
        fraction = min(1.0, info.fraction_done)
        done, took, before = self._progress(info, fraction, now)
        rate = done * info.njobs / took if done > 0 and took > 0 else 0.0
        if times is None:
            return self._left_by_speed(info.njobs, fraction, before, rate)
        self._fit = _fitted(times, rate, self._fit)
        if self._fit is None:
            return None
        if len(times.durations) >= _MANY:
            slowest = math.exp(_NORMAL.inv_cdf(0.975) * self._fit.spread)
            self._slowest = slowest if slowest >= _SLOW else None
        if not times.waiting:
            return self._fit.last_of(_some(times.ages), len(times.ages))
        if not rate:
            return None
        return times.waiting / rate + self._fit.last_in_turn(len(times.ages))

    def _progress(
        self, info: rpc.BatchInfo, fraction: float, now: float
    ) -> tuple[float, float, float]:
        """Return the latest quarter of the progress, its seconds, and the progress before it."""
        if not self._seen:
            # All of the progress was made since its creation, if the two clocks agree well enough.
            self._seen.append((min(info.create_time, now), 0.0))
        if fraction != self._seen[-1][1]:
            self._seen.append((now, fraction))
        at, before = next(
            (seen for seen in reversed(self._seen) if seen[1] <= 0.75 * fraction), self._seen[0]
        )
        return fraction - before, now - at, before

    def _left_by_speed(
        self, njobs: int, fraction: float, before: float, rate: float
    ) -> float | None:
        if not rate:
            return None
        self._fastest = max(self._fastest, rate)
        left = njobs * (1 - fraction)
        if fraction < _LATE or rate > self._fastest / 2:
            return left / rate
        # Each job that runs ends with the same probability in each second.
        running = njobs * (1 - (before + fraction) / 2)
        return running / rate * _harmonic(math.ceil(left))


def _harmonic(count: int) -> float:
    """Return 1 + 1/2 + … + 1/``count``; a project may claim any number of jobs."""
    exact = min(count, _EXACT)
    rest = math.log(count / exact) if count > exact else 0.0
    return sum(1 / n for n in range(1, exact + 1)) + rest


@dataclass(frozen=True, slots=True)
class _Fit:
    """Durations as log-normally distributed, apart from a few stragglers.

    Attributes:
        middle: the logarithm of the median.
        spread: the standard deviation of the logarithms.
        straggling: the part of the jobs that may take any time.
    """

    middle: float
    spread: float
    straggling: float

    def longer(self, seconds: float) -> float:
        """Return the part of the jobs that take longer than this."""
        if seconds <= 0:
            return 1.0
        usual = _above((math.log(seconds) - self.middle) / self.spread)
        # Of those that have taken long, half take at most 0.4 times as long again.
        slow = (1 + seconds / (3 * math.exp(self.middle))) ** -2
        return (1 - self.straggling) * usual + self.straggling * slow

    def last_of(self, ages: Sequence[float], count: int) -> float:
        """Return in how many seconds the last job ends of ``count`` jobs with ages like these."""
        if not ages:
            return 0.0
        each = count / len(ages)
        now = [(age, self.longer(age)) for age in ages]
        return _first(
            lambda left: each * sum(self.longer(age + left) / part for age, part in now) <= _LAST
        )

    def last_in_turn(self, count: int) -> float:
        """Return after how many seconds the last of ``count`` jobs ends that began in turn."""
        mean = math.exp(self.middle + self.spread**2 / 2)

        def is_over(left: float) -> bool:
            z = (math.log(left) - self.middle) / self.spread
            rest = _above(z - self.spread) - left / mean * _above(z)
            return count * rest <= _LAST

        return _first(is_over)


def _fitted(times: JobTimes, rate: float, last: _Fit | None) -> _Fit | None:
    """Return the distribution of durations; ``rate`` is how many jobs end in a second."""
    total = times.waiting + len(times.durations) + len(times.ages)
    straggling = 0.5 / (total + 1)
    over = [math.log(max(each, _SOON)) for each in _some(times.durations)]
    if len(over) < _ENOUGH:
        if over:
            mean = sum(over) / len(over)
        elif rate and times.ages:
            # As many run as begin while one runs (Little's law).
            mean = math.log(len(times.ages) / rate) - _USUAL_SPREAD**2 / 2
        else:
            return None
        return _Fit(mean, _USUAL_SPREAD, straggling)
    open_ = [math.log(max(each, _SOON)) for each in _some(times.ages)]
    # Both are samples: what stands for more counts for more.
    weight = (len(times.ages) / max(1, len(open_))) / (len(times.durations) / len(over))
    middle, spread = (last.middle, last.spread) if last else (sum(over) / len(over), _USUAL_SPREAD)
    number = len(over) + weight * len(open_)
    for _ in range(_STEPS):
        sums, squares = sum(over), sum(each * each for each in over)
        for age in open_:
            z = (age - middle) / spread
            hazard = _hazard(z)
            sums += weight * (middle + spread * hazard)
            squares += weight * (
                middle**2 + spread**2 + 2 * middle * spread * hazard + spread**2 * z * hazard
            )
        middle = sums / number
        spread = math.sqrt(max(0.0, squares / number - middle**2))
        spread = min(max(spread, _LEAST_SPREAD), _LARGEST_SPREAD)
    return _Fit(middle, spread, straggling)


def _some(values: Sequence[float]) -> Sequence[float]:
    """Return at most :data:`_AT_MOST` of the values, in even steps."""
    return values[:: -(-len(values) // _AT_MOST)] if values else values


def _above(z: float) -> float:
    """Return the part of a normal distribution above ``z``."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def _hazard(z: float) -> float:
    """Return the mean of a normal distribution's part above ``z``."""
    if z > 25:
        return z + 1 / z
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / _above(z)


def _first(is_over: Callable[[float], bool]) -> float:
    """Return the seconds from which on ``is_over`` is true, to a hundredth."""
    low, high = _SOON, _SOON
    while not is_over(high):
        low, high = high, 2 * high
        if high > _TOO_FAR:
            return _TOO_FAR
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        if is_over(middle):
            high = middle
        else:
            low = middle
    return high
