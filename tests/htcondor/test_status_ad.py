"""What HTCondor is told of a job."""

import math
import time

import classad2
import pytest
from hypothesis import given

from boinc_gahp.gahp import lines
from boinc_gahp.htcondor.status_ad import status_ad
from boinc_gahp.ledger.rows import JobRow
from boinc_gahp.states import LEDGER_WORDS, HTCondorState
from tests.helpers import TEXTS


def row(state, **values):
    names = dict.fromkeys(JobRow._fields)
    return JobRow(**(names | {"id": 1, "state": state} | values))


def parsed(ad):
    assert ad.isascii()
    assert ad.isprintable()
    return dict(classad2.ClassAd(ad).items())


@pytest.mark.parametrize("state", LEDGER_WORDS)
def test_a_state_is_reported_with_its_word_and_always_an_ad(state):
    word, ad = status_ad(row(state))
    assert word == LEDGER_WORDS[state].htcondor
    assert "RemoteWallClockTime" not in parsed(ad)
    if word not in {HTCondorState.COMPLETED, HTCondorState.HELD}:
        assert parsed(ad) == {}


@pytest.mark.parametrize("code", [0, 1, 255, -1073741819, None])
def test_a_completed_job_always_has_an_exit_code(code):
    _, ad = status_ad(row("done", exit_code=code, cpu_time=12.5))
    expected = {"ExitCode": code or 0, "ExitBySignal": False, "RemoteUserCpu": 12.5}
    assert parsed(ad) == expected


@pytest.mark.parametrize("signal", [1, 9, 64])
def test_a_signal_that_ended_the_program_is_reported_as_one(signal):
    _, ad = status_ad(row("done", exit_code=-signal))
    assert parsed(ad) == {"ExitSignal": signal, "ExitBySignal": True}


def test_a_job_whose_program_failed_is_reported_with_the_reason_and_no_signal():
    _, ad = status_ad(row("done", exit_code=139, exit_reason='it "failed"\nbadly'))
    expected = {"ExitCode": 139, "ExitBySignal": False, "ExitReason": 'it "failed" badly'}
    assert parsed(ad) == expected


@pytest.mark.parametrize("seconds", [None, math.nan, math.inf, -1.0])
def test_a_time_that_is_none_is_left_out(seconds):
    _, ad = status_ad(row("done", exit_code=0, cpu_time=seconds, elapsed_time=seconds))
    assert parsed(ad).keys() == {"ExitCode", "ExitBySignal"}


@pytest.mark.parametrize("running", [None, 7])
def test_with_what_htcondor_adds_the_wall_clock_time_is_the_instances(running):
    _, ad = status_ad(row("done", exit_code=0, elapsed_time=1.5))
    job = classad2.ClassAd(ad)
    if running is not None:
        job["ShadowBday"] = int(time.time()) - running
    assert job.eval("RemoteWallClockTime") + (running or 0) == pytest.approx(1.5, abs=1)


def test_what_a_job_sent_and_received_is_in_bytes():
    _, ad = status_ad(row("done", exit_code=0, bytes_sent=2**40, bytes_received=0))
    assert (parsed(ad)["BytesSent"], parsed(ad)["BytesRecvd"]) == (2.0**40, 0.0)


def test_a_failed_job_is_reported_with_reason_and_codes():
    reason = 'input "a b.dat" \\ is gone:\n  grüße'
    _, ad = status_ad(row("failed", hold_reason=reason, hold_code=2301, hold_subcode=2))
    assert parsed(ad) == {
        "HoldReason": 'input "a b.dat" \\ is gone: grüße',
        "HoldReasonCode": 2301,
        "HoldReasonSubCode": 2,
    }


def test_a_job_that_was_cancelled_since_it_was_to_be_held_is_told_to_be_held():
    values = {"hold_reason": "it crashed", "hold_code": 2304, "hold_subcode": 193}
    assert status_ad(row("cancelled", **values)) == status_ad(row("failed", **values))
    assert status_ad(row("cancelled"))[0] == 3


@given(TEXTS)
def test_any_reason_is_one_word_that_htcondor_can_parse(reason):
    _, ad = status_ad(row("failed", hold_reason=reason, hold_code=2304, hold_subcode=1))
    line = lines.join(["7", "0", "NULL", "5", ad])
    assert lines.split(line)[4] == ad
    found = parsed(ad)["HoldReason"]
    if reason.isprintable() and len(reason) < 2000 and reason.strip():
        assert found == " ".join(reason.split())


def test_an_endless_reason_is_cut_in_the_middle():
    _, ad = status_ad(row("failed", hold_reason="begin " + "x " * 5000 + "end"))
    found = str(parsed(ad)["HoldReason"])
    assert len(found) <= 2000
    assert found.startswith("begin")
    assert found.endswith("end")
