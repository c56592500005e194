"""A batch's end at its recent rate, and its counts, in words: nothing where nothing is known."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.known_batch import Forecast, KnownBatch
from boinc_gahp.api.progress import counts_words, rest_words
from boinc_gahp.api.watching import JobTracker
from boinc_gahp.rpc.types import BatchInfo
from boinc_gahp.states import BatchState, JobState

NOW = 2_000_000_000.0
INFO = BatchInfo(
    id=1,
    name="b",
    app_name="a",
    state=BatchState.IN_PROGRESS,
    create_time=NOW,
    expire_time=0,
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
        replace(INFO, fraction_done=0.5, state=BatchState.ABORTED),
        replace(INFO, fraction_done=1e-9),
    ],
    ids=["no job has ended", "aborted", "ten years are too far"],
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


# -- in words


def shown(**changes):
    """Return a batch as the project's last answer describes it."""
    batch = KnownBatch(SimpleNamespace(), INFO)
    running = changes.pop("running", None)
    batch.see(replace(INFO, **changes))
    batch._running = running
    return batch


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fraction_done": 0.2, "running": 30}, "50 waiting, 30 running, 20 done"),
        (
            {"fraction_done": 0.2, "running": 30, "nerror_jobs": 2},
            "50 waiting, 30 running, 18 done",
        ),
        ({"fraction_done": 0.2}, "20 of 100 jobs over"),
        ({"fraction_done": 0.2, "nerror_jobs": 1}, "20 of 100 jobs over, 1 failed"),
        ({"fraction_done": 1.0, "state": BatchState.COMPLETE}, "100 done"),
        ({"state": BatchState.INIT}, ""),
    ],
)
def test_counts_are_in_words(changes, words):
    assert counts_words(shown(**changes)).startswith(words)


def test_the_rest_at_the_recent_rate_is_told():
    batch = shown(fraction_done=0.5)
    assert rest_words(batch, None, NOW) == ""
    assert rest_words(batch, NOW + 7200, NOW) == "at the recent rate: about 2 h more"
    over = shown(fraction_done=1.0, state=BatchState.COMPLETE)
    assert rest_words(over, NOW, NOW) == ""


@pytest.mark.parametrize(
    ("waiting", "seconds", "words"),
    [(0, 7200, "one job has run for 2 h or more"), (1, 7200, ""), (0, 5, "")],
    ids=["the last ones run", "others wait", "just begun"],
)
def test_the_longest_job_is_told_when_none_waits(waiting, seconds, words):
    batch = shown(fraction_done=0.5)
    jobs = JobTracker()
    for at in (NOW, NOW + seconds):
        states = {f"j{n}": JobState.DONE for n in range(50)}
        states |= {f"j{n}": JobState.IN_PROGRESS for n in range(50, 100)}
        states |= {f"j{99 - n}": JobState.QUEUED for n in range(waiting)}
        jobs.see(states.items(), at)
    batch.see(batch.info, jobs.running, jobs.longest)
    assert rest_words(batch, None, NOW) == words
