"""A batch's end at its recent rate: never in the past, and nothing where nothing is known."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.known_batch import Forecast
from boinc_gahp.rpc.types import BatchInfo
from boinc_gahp.states import BatchState

NOW = 2_000_000_000.0
INFO = BatchInfo(
    id=1,
    name="b",
    app_name="a",
    state=BatchState.IN_PROGRESS,
    create_time=NOW,
    expire_time=0,
    est_completion_time=0,
    completion_time=0,
    njobs=100,
    nerror_jobs=0,
    fraction_done=0,
    credit_estimate=0,
    credit_canonical=0,
)


@given(st.floats(0.05, 0.95), st.floats(1, 1e6))
def test_an_even_speed_gives_the_right_end(fraction, duration):
    forecast = Forecast()
    for part in (0.25, 0.5, 0.75, 1.0):
        at = fraction * part
        forecast.see(replace(INFO, fraction_done=at), NOW + at * duration)
    assert forecast.end == pytest.approx(NOW + duration, abs=0.01 * duration + 0.01)


def test_a_slow_beginning_is_forgotten():
    forecast = Forecast()
    for second in range(51):  # nothing for 1,000 s, then a hundredth a second
        seen = replace(INFO, fraction_done=second / 100)
        forecast.see(seen, NOW + 1000 + second)
    assert forecast.end == pytest.approx(NOW + 1100, abs=5)


def test_the_end_goes_off_while_nothing_happens():
    forecast = Forecast()
    half = replace(INFO, fraction_done=0.5)
    forecast.see(half, NOW + 100)
    first = forecast.end
    forecast.see(half, NOW + 300)
    assert first == NOW + 200
    assert forecast.end == NOW + 600


@pytest.mark.parametrize(
    "info",
    [
        INFO,
        replace(INFO, est_completion_time=NOW + 50),
        replace(INFO, fraction_done=0.5, state=BatchState.ABORTED),
        replace(INFO, fraction_done=1e-9),
    ],
    ids=["no job has ended", "the project guesses", "aborted", "ten years are too far"],
)
def test_nothing_is_said_where_nothing_is_known(info):
    forecast = Forecast()
    forecast.see(info, NOW + 5)
    assert forecast.end is None


@given(
    st.lists(
        st.tuples(st.floats(0, 1e9), st.floats(0, 1), st.sampled_from(BatchState)), max_size=30
    )
)
def test_no_end_is_in_the_past(seen):
    forecast = Forecast()
    for ago, fraction, state in sorted(seen, key=lambda one: one[0], reverse=True):
        now = NOW - ago
        forecast.see(replace(INFO, fraction_done=fraction, state=state), now)
        assert forecast.end is None or forecast.end >= now
