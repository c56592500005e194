"""What time it is on the project, as its replies tell."""

import math
import time
from email.utils import formatdate

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.rpc import _transport
from boinc_gahp.rpc._transport import Clock


def heard(date, *, took=0.0):
    told = Clock()
    told.hear(date, _transport._uptime() - took)
    return told


@pytest.mark.parametrize("ahead", [3600.0, -3600.0, 86400.0, -86400.0, 90.0])
def test_a_time_is_sent_as_the_project_s_clock_will_show_it(ahead):
    told = heard(formatdate(time.time() + ahead, usegmt=True))
    at = time.time() + 1000.0
    assert told.to_project(at) == pytest.approx(at + ahead, abs=3)


@pytest.mark.parametrize("ahead", [0.0, 30.0, -30.0])
def test_clocks_that_agree_change_no_time(ahead):
    told = heard(formatdate(time.time() + ahead, usegmt=True))
    assert told.to_project(1234567890.25) == 1234567890.25


def test_a_project_that_tells_no_time_is_not_asked_again():
    told = heard(None)
    assert told.is_known
    assert told.to_project(1234567890.25) == 1234567890.25
    assert not Clock().is_known


def test_a_reply_that_took_long_tells_no_time():
    # Its Date may be of when the request came, and that may have been an upload of hours.
    assert not heard(formatdate(time.time() - 7200, usegmt=True), took=7200).is_known


def test_what_was_heard_holds_when_this_machine_s_clock_is_set(monkeypatch):
    now = time.time()
    told = heard(formatdate(now, usegmt=True))
    monkeypatch.setattr(time, "time", lambda: now + 86400.0)
    # In ten minutes, by the clock of this machine, is in ten minutes there.
    assert told.to_project(now + 86400.0 + 600.0) == pytest.approx(now + 600.0, abs=60)


def test_what_was_heard_long_ago_is_asked_for_again(monkeypatch):
    told = heard(formatdate(usegmt=True))
    later = _transport._uptime() + 3600.0
    monkeypatch.setattr(_transport, "_uptime", lambda: later)
    assert not told.is_known


@given(
    st.text(max_size=60)
    | st.from_regex(r"(Mon, )?\d{1,5} (Jan|Xyz) \d{1,9} [\d:]{1,9} ?(GMT|[+-]\d+)?")
)
def test_any_date_tells_a_time_or_none(date):
    assert math.isfinite(heard(date).to_project(1234567890.25))
