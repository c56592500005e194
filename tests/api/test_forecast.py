"""When a batch will be over: never in the past, and right also for the last jobs."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api import Forecast
from boinc_gahp.api.forecast import JobTimes
from boinc_gahp.rpc import BatchState
from tests.api.simulated_batches import INFO, NOW, Kind, looks

if TYPE_CHECKING:
    from boinc_gahp.rpc import BatchInfo

KINDS = {
    "even": Kind(),
    "uneven": Kind(spread=0.8),
    "stragglers": Kind(stragglers=0.03),
    "vanishing hosts": Kind(spread=0.4, vanishing=0.01),
    "bursts": Kind(spread=0.4, at_once=5),
}


class Linear:
    """The forecast before this one: the rest goes on as the latest quarter of the progress did."""

    def __init__(self) -> None:
        self.end: float | None = None
        self._seen: deque[tuple[float, float]] = deque([(NOW, 0.0)], maxlen=200)

    def see(self, info: BatchInfo, now: float) -> None:
        fraction = info.fraction_done
        if fraction != self._seen[-1][1]:
            self._seen.append((now, fraction))
        before = next((s for s in reversed(self._seen) if s[1] <= 0.75 * fraction), self._seen[0])
        done = fraction - before[1]
        self.end = now + (1 - fraction) * (now - before[0]) / done if done > 0 else None


def errors(kind: Kind, count: int, hosts: int, *, at: float, seed: int) -> tuple[float, float]:
    """Return how far off the linear forecast and this one are when the part ``at`` is over.

    It is the logarithm of the estimated rest of the time, divided by the true one.
    """
    jobs = kind.jobs(random.Random(seed), count, hosts)
    last = max(end for _, end in jobs)
    linear, forecast = Linear(), Forecast()
    for now, info, times in looks(jobs, pause=60.0):
        linear.see(info, NOW + now)
        forecast.see(info, NOW + now, times)
        if info.fraction_done >= at and linear.end and forecast.end:
            rest = last - now
            return (
                abs(math.log(max(1.0, linear.end - NOW - now) / rest)),
                abs(math.log(max(1.0, forecast.end - NOW - now) / rest)),
            )
    return 0.0, 0.0


@pytest.mark.parametrize("hosts", [20, 300], ids=["few hosts", "a host for each job"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_the_last_jobs_is_forecast_better_than_on_a_line(kind: str, hosts: int) -> None:
    for part in (0.9, 0.95):
        both = [errors(KINDS[kind], 200, hosts, at=part, seed=seed) for seed in range(9)]
        linear, forecast = (median(each) for each in zip(*both, strict=True))
        assert forecast < 0.75 * linear, (part, linear, forecast)


@pytest.mark.parametrize("kind", ["even", "uneven"])
def test_the_estimated_rest_is_right_within_a_third_when_all_jobs_run(kind: str) -> None:
    for part in (0.3, 0.6, 0.9, 0.95):
        off = [errors(KINDS[kind], 200, 300, at=part, seed=seed)[1] for seed in range(9)]
        assert median(off) < math.log(1.5)


@given(
    st.builds(
        Kind,
        spread=st.floats(0, 2),
        stragglers=st.floats(0, 0.2),
        vanishing=st.floats(0, 0.2),
        deadline=st.floats(1, 100),
        at_once=st.integers(1, 10),
    ),
    st.integers(1, 60),
    st.integers(1, 30),
    st.integers(0, 2**32),
)
def test_no_end_is_in_the_past_and_the_last_ones_are_near(
    kind: Kind, count: int, hosts: int, seed: int
) -> None:
    jobs = kind.jobs(random.Random(seed), count, hosts)
    last = max(end for _, end in jobs)
    forecast = Forecast()
    for now, info, times in looks(jobs, pause=last / 40):
        forecast.see(info, NOW + now, times)
        assert forecast.end is None or forecast.end >= NOW + now
        assert forecast.slowest is None or forecast.slowest >= 2
    over = replace(INFO, njobs=count, fraction_done=1.0, state=BatchState.COMPLETE)
    forecast.see(over, NOW + last, JobTimes(0, [end - begin for begin, end in jobs], []))
    assert forecast.end is None


@given(st.floats(1, 1e6), st.integers(5, 50))
def test_jobs_that_take_the_same_time_end_when_that_is_over(duration: float, count: int) -> None:
    forecast = Forecast()
    forecast.see(
        replace(INFO, njobs=2 * count, fraction_done=0.5),
        NOW + 1.5 * duration,
        JobTimes(0, [duration] * count, [duration / 2] * count),
    )
    assert forecast.end is not None
    assert forecast.end - NOW == pytest.approx(2 * duration, rel=0.2)


@given(
    st.lists(st.floats(10, 1000), min_size=10, max_size=100),
    st.lists(st.floats(0, 2000), min_size=1, max_size=20),
)
def test_fewer_jobs_that_run_end_no_later(durations: list[float], ages: list[float]) -> None:
    info = replace(INFO, fraction_done=0.5)
    ends = []
    for running in (ages, ages[1:]):
        forecast = Forecast()
        # The same distribution, of which fewer are left.
        fitted = JobTimes(0, durations, ages)
        forecast.see(info, NOW + 5000, fitted)
        assert forecast._fit is not None
        ends.append(forecast._fit.last_of(running, len(running)))
    assert ends[1] <= 1.02 * ends[0] + 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_goes_off_while_no_job_ends(kind: str) -> None:
    jobs = KINDS[kind].jobs(random.Random(1), 100, 30)
    forecast = Forecast()
    for now, info, times in looks(jobs):
        forecast.see(info, NOW + now, times)
        if info.fraction_done > 0.9:
            break
    rests, ends = [], []
    for hour in range(1, 40):
        later = NOW + now + hour * 3600
        forecast.see(
            info,
            later,
            replace(times, ages=[age + hour * 3600 for age in times.ages]),
        )
        assert forecast.end is not None
        ends.append(forecast.end)
        rests.append(forecast.end - later)
    assert ends == sorted(ends)
    # What has taken long is not expected at any moment.
    assert all(after > before for before, after in pairwise(rests[10:]))


def test_durations_that_nobody_saw_follow_from_how_many_jobs_run() -> None:
    forecast = Forecast()
    # 20 run, and one ends each 5 s: each takes 100 s.
    forecast.see(
        replace(INFO, fraction_done=0.8), NOW + 400, JobTimes(0, [], [10.0 * n for n in range(20)])
    )
    assert forecast.end is not None
    assert NOW + 450 < forecast.end < NOW + 900


def test_the_slowest_jobs_are_reported_when_there_are_enough_of_them() -> None:
    dice = random.Random(2)
    durations = [100 * math.exp(dice.gauss(0, 0.6)) for _ in range(200)]
    forecast = Forecast()
    forecast.see(replace(INFO, fraction_done=0.1), NOW + 1000, JobTimes(90, durations[:10], []))
    assert forecast.slowest is None
    forecast.see(replace(INFO, fraction_done=0.1), NOW + 1000, JobTimes(90, durations, []))
    assert forecast.slowest == pytest.approx(math.exp(1.96 * 0.6), rel=0.2)
    forecast.see(replace(INFO, fraction_done=0.1), NOW + 1000, JobTimes(90, [100.0] * 200, []))
    assert forecast.slowest is None


def test_a_hundred_thousand_jobs_are_no_more_work_than_a_sample_of_them() -> None:
    dice = random.Random(3)
    durations = [math.exp(dice.gauss(0, 0.5)) for _ in range(50_000)]
    forecast = Forecast()
    forecast.see(
        replace(INFO, njobs=100_000, fraction_done=0.5),
        NOW + 100,
        JobTimes(40_000, durations, durations[:10_000]),
    )
    assert forecast._fit is not None
    assert forecast._fit.spread == pytest.approx(0.5, abs=0.25)


# -- if nothing is known about single jobs


@given(st.floats(0.05, 0.95), st.floats(1, 1e6))
def test_an_even_speed_gives_the_right_end(fraction: float, duration: float) -> None:
    forecast = Forecast()
    for part in (0.25, 0.5, 0.75, 1.0):
        at = fraction * part
        forecast.see(replace(INFO, fraction_done=at), NOW + at * duration)
    assert forecast.end == pytest.approx(NOW + duration, abs=0.01 * duration + 0.01)


def test_a_slow_beginning_is_forgotten() -> None:
    forecast = Forecast()
    for second in range(51):  # nothing for 1,000 s, then a hundredth a second
        seen = replace(INFO, fraction_done=second / 100)
        forecast.see(seen, NOW + 1000 + second)
    assert forecast.end == pytest.approx(NOW + 1100, abs=5)


def test_the_end_goes_off_while_nothing_happens() -> None:
    forecast = Forecast()
    half = replace(INFO, fraction_done=0.5)
    forecast.see(half, NOW + 100)
    first = forecast.end
    forecast.see(half, NOW + 300)
    assert first == NOW + 200
    assert forecast.end == NOW + 600


@pytest.mark.parametrize(
    ("info", "now", "end"),
    [
        (INFO, NOW + 5, None),
        (replace(INFO, est_completion_time=NOW + 50), NOW + 5, NOW + 50),
        (replace(INFO, est_completion_time=NOW + 50), NOW + 60, None),
        (replace(INFO, est_completion_time=NOW + 50, state=BatchState.ABORTED), NOW + 5, None),
    ],
    ids=["nothing known", "the project's estimate", "an estimate that is past", "aborted"],
)
def test_nothing_done_tells_nothing_but_what_the_project_thinks(
    info: BatchInfo, now: float, end: float | None
) -> None:
    forecast = Forecast()
    forecast.see(info, now)
    assert forecast.end == end


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e9), st.floats(0, 1), st.floats(0, 4e9), st.sampled_from(BatchState)
        ),
        max_size=30,
    )
)
def test_no_end_is_in_the_past(
    seen: list[tuple[float, float, float, BatchState]],
) -> None:
    forecast = Forecast()
    for ago, fraction, estimate, state in sorted(seen, key=lambda one: one[0], reverse=True):
        now = NOW - ago
        forecast.see(
            replace(INFO, fraction_done=fraction, est_completion_time=estimate, state=state), now
        )
        assert forecast.end is None or forecast.end >= now


@given(st.integers(40_000, 2**62))
def test_a_project_that_claims_any_number_of_jobs_gets_an_answer(njobs: int) -> None:
    forecast = Forecast()
    for fraction, now in ((0.5, 50.0), (0.9, 100.0), (0.91, 500.0)):
        forecast.see(replace(INFO, njobs=njobs, fraction_done=fraction), NOW + now)
    assert forecast.end is not None
    assert forecast.end >= NOW + 500
