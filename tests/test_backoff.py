"""Growing pauses between attempts."""

import threading
import time

import hypothesis.strategies as st
import pytest
from hypothesis import given

from boinc_gahp.backoff import Backoff

SECONDS = st.floats(0.001, 1e6)
FAILURES = st.integers(0, 10**6)
FACTORS = st.floats(1.0, 10.0)
JITTERS = st.tuples(st.floats(0.1, 1.0), st.floats(1.0, 3.0))


@given(SECONDS, SECONDS, FACTORS, FAILURES)
def test_pauses_grow_from_the_first_to_the_longest(first, longest, factor, failures):
    backoff = Backoff(first, longest, factor)
    pause, next_ = backoff.seconds(failures), backoff.seconds(failures + 1)
    assert backoff.seconds(0) == first
    assert first <= pause <= next_ <= max(first, longest)
    assert next_ <= pause * factor * (1 + 1e-9)


@given(SECONDS, SECONDS, FACTORS, JITTERS, FAILURES)
def test_pauses_are_spread_within_their_bounds(first, longest, factor, jitter, failures):
    plain = Backoff(first, longest, factor).seconds(failures)
    pause = Backoff(first, longest, factor, jitter).seconds(failures)
    assert plain * jitter[0] * (1 - 1e-9) <= pause <= plain * jitter[1] * (1 + 1e-9)


def test_pauses_that_are_spread_differ():
    backoff = Backoff(1.0, jitter=(0.5, 1.5))
    assert len({backoff.seconds(3) for _ in range(20)}) > 1


@given(SECONDS, SECONDS, FACTORS, st.floats(0.0, 1e7))
def test_what_follows_on_a_pause_is_longer_and_within_the_bounds(first, longest, factor, pause):
    backoff = Backoff(first, longest, factor)
    most = max(first, longest)
    assert min(pause, most) <= backoff.after(pause) <= most
    assert backoff.after(pause) >= first


@given(SECONDS, SECONDS, FACTORS, st.integers(0, 50))
def test_one_pause_after_the_other_is_as_by_number(first, longest, factor, failures):
    backoff = Backoff(first, longest, factor)
    pause = first
    for _ in range(failures):
        pause = backoff.after(pause)
    assert pause == pytest.approx(backoff.seconds(failures))


def test_a_pause_without_end_is_ended_by_whoever_stops_it():
    stop = threading.Event()
    said = []
    waiter = threading.Thread(target=lambda: said.append(Backoff(1e6).wait(0, stop=stop)))
    waiter.start()
    stop.set()
    waiter.join(60)
    assert said == [False]


@pytest.mark.parametrize("left", [0.02, 0.0, -5.0])
def test_a_pause_without_end_goes_no_further_than_the_deadline(left):
    assert Backoff(1e6).wait(0, until=time.monotonic() + left)
    assert Backoff(1e6).wait(7, stop=threading.Event(), until=time.monotonic() + left)
