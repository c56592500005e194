"""One batch or job that a project has trouble with keeps no other from what it needs."""

import time
from dataclasses import replace

import pytest

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.errors import TransportError
from boinc_gahp.htcondor import _upkeep
from boinc_gahp.htcondor._context import CancelScopes, FailureBackoff, NoLongerWanted
from boinc_gahp.htcondor._following import Follower
from tests import faultproxy
from tests.helpers import refusal, wait_for
from tests.htcondor.desk import fail_queries, noting, only_for, refuse
from tests.htcondor.helpers import await_state, row_of
from tests.htcondor.onproject import fetch_all, follow, send
from tests.htcondor.task_runner import TaskRunner

DAY = 86400.0
NOT_OWNER = "not owner of batch"


def choke(*markers, code=504):
    """Answer with an HTTP status where one of the markers is asked about; let others pass."""
    return only_for(faultproxy.status(code), *markers)


@pytest.fixture
def context(site):
    site.timeouts = replace(site.timeouts, retry=0.0)
    site.reset(poll_shortest=1.0, poll_longest=4.0)
    site.local.pause_volunteers()
    with site.context() as context:
        yield context


# -- leases, aborts, retirements


def test_a_lease_that_is_not_renewed_keeps_no_other_from_it(site, context):
    bad, good = send(site, context), send(site, context)
    later = good.batch.lease_until - DAY / 2
    context.jobs.htcondor_polled(dict.fromkeys([bad.job.id, good.job.id], later))
    site.proxy.fail("set_expire_time", choke(*bad.markers), times=None)
    runner = TaskRunner(context)
    runner.run(later)
    assert good.batch.lease_until == later + context.htcondor.lease
    assert bad.batch.lease_until < later + DAY
    site.proxy.heal()
    again = later + 120.0
    runner.run(again)
    assert bad.batch.lease_until == again + context.htcondor.lease


def test_of_three_cancelled_jobs_two_are_aborted_though_the_third_s_batch_is_another_s(
    site, context, monkeypatch
):
    sent = send(site, context, (), (), ())
    bad = sent.jobs[1]
    for job in sent.jobs:
        context.jobs.cancel(job.id)
    fault = refuse(NOT_OWNER, f"{bad.job_name}<".encode(), rpc="abort_jobs")
    site.proxy.fail("abort_jobs", fault, times=None)
    runner = TaskRunner(context)
    now = time.time()
    runner.run(now)
    assert [one.id for one in context.jobs.pending_aborts(*site.owner)] == [bad.id]
    assert len(site.failed()) == 2
    # It has pauses of its own, which grow.
    asked = site.proxy.count("abort_jobs")
    runner.run(now)
    assert site.proxy.count("abort_jobs") == asked
    again = runner.due(now)
    runner.run(again)
    assert site.proxy.count("abort_jobs") == asked + 1
    assert runner.due(again) - again > again - now
    # In the end the project is believed, so that the batch can be retired.
    monkeypatch.setattr(_upkeep, "REFUSAL_FINAL", 0.0)
    runner.run(runner.due(again))
    runner.run(runner.due(again))
    assert context.jobs.pending_aborts(*site.owner) == []
    assert sent.batch.state == "retired"


def test_a_job_whose_abort_takes_too_long_keeps_no_other_from_being_aborted(site, context):
    sent = send(site, context, (), (), (), ())
    bad = sent.jobs[2]
    for job in sent.jobs:
        context.jobs.cancel(job.id)
    fault = choke(f"{bad.job_name}<".encode())
    site.proxy.fail("abort_jobs", fault, times=None)
    runner = TaskRunner(context)
    runner.run(time.time())
    assert [one.id for one in context.jobs.pending_aborts(*site.owner)] == [bad.id]
    assert len(site.failed()) == 3


# -- following


@pytest.mark.long
@pytest.mark.parametrize("code", [502, 503, 504, 0], ids=["502", "503", "504", "time-out"])
def test_a_batch_that_is_slow_to_ask_about_starves_no_other(code, site, context):
    slow, quick = send(site, context), send(site, context)
    fault = choke(*slow.markers, code=code) if code else only_for(faultproxy.hang(), *slow.markers)
    fail_queries(site, fault)
    site.local.resume_volunteers()
    site.timeouts = replace(site.timeouts, read=2)
    with site.context() as hasty:
        follower = follow(hasty, quick, "finished")
        assert slow.states == ["queued"]
        assert "no news of its jobs" in str(slow.batch.trouble)
        assert context.jobs.troubles() == {}
        site.proxy.heal()
        follow(hasty, slow, "finished", follower=follower)
    assert slow.batch.trouble is None


def test_a_batch_that_cannot_be_asked_about_keeps_no_other_from_being_fetched(site, context):
    slow, quick = send(site, context, (), (), (), ()), send(site, context)
    site.local.resume_volunteers()
    follow(context, slow, *["finished"] * 4)
    follow(context, quick, "finished")
    asked = []
    site.proxy.fail("query_batch", noting(asked, choke(*slow.markers)), times=None)
    # So it is not tried again for an hour; a new process has no such pause.
    site.reset(poll_shortest=3600.0, poll_longest=3600.0, fetches=1)
    fetch_all(site, quick)
    assert set(slow.states) == {"finished"}
    # One job tries it for all.
    assert len([body for body in asked if any(each in body for each in slow.markers)]) == 1
    site.proxy.heal()
    fetch_all(site, slow)


def test_a_slow_batch_is_asked_about_alone_and_ever_less_often(site, context):
    slow, quick = send(site, context), send(site, context)
    asked = []
    fail_queries(site, noting(asked, choke(*slow.markers)))
    slow_name, quick_name = slow.markers[0], quick.markers[0]
    follower = Follower(context)
    now = 1000.0
    follower.poll(now)
    for _ in range(30):
        now += 1.0
        asked.clear()
        follower.poll(now)
        assert not [body for body in asked if slow_name in body and quick_name in body]
        assert [body for body in asked if quick_name in body]
    alone = [body for body in asked if any(each in body for each in slow.markers)]
    assert len(alone) <= 1


def test_a_poll_ends_where_no_batch_can_be_asked_about(site, context):
    for _ in range(12):
        send(site, context)
    fail_queries(site, faultproxy.status(504))
    before = site.proxy.count("query_batch")
    Follower(context).poll(1000.0)
    assert site.proxy.count("query_batch") - before == 4
    assert context.jobs.troubles() == {}


# -- sending


@pytest.mark.long
def test_one_batch_that_cannot_be_sent_keeps_no_new_jobs_from_being_sent(site, jobs):
    site.reset(poll_shortest=300.0, poll_longest=300.0)
    site.local.pause_volunteers()
    site.proxy.fail("submit_batch", choke(b"slow"), times=None)
    with site.service() as service:
        slow = service.submit(site.job("slow").ad)
        wait_for(lambda: row_of(jobs, slow).batch_id is not None, "the batch")
        batch = row_of(jobs, slow).batch_id

        wait_for(lambda: jobs.batch(batch).not_before > 0, "the failure")
        quick = service.submit(site.job().ad)
        await_state(jobs, quick, "queued")
        assert jobs.troubles() == {}


# -- whose trouble it is


def test_whose_trouble_an_error_is(site, context):
    pauses = context.pauses
    lost = TransportError("x", rpc="x", host="h")
    unreachable = TransportError("x", rpc="x", host="h", may_be_running=False)
    assert not pauses.is_of_project(refusal(NOT_OWNER))
    assert not pauses.is_of_project(refusal("no submit access"))
    assert not pauses.is_of_project(refusal("no batch named x"))
    assert site.proxy.count("ping") == 0
    assert not pauses.is_of_project(lost)
    assert site.proxy.count("ping") == 1
    site.local.core.web_stopped = True
    assert pauses.is_of_project(lost)
    assert pauses.until() > time.time()
    assert pauses.succeeded()
    assert pauses.until() == 0
    assert pauses.is_of_project(unreachable)
    assert site.proxy.count("ping") > 1
    asked = site.proxy.count("ping")
    for sure in (
        refusal("down for maintenance", number=-183),
        refusal("bad authenticator"),
        refusal("no file access"),
    ):
        assert pauses.is_of_project(sure), sure
    assert site.proxy.count("ping") == asked
    # All that wait for the project wait no longer, once one of them is answered.
    assert pauses.until(("retire", 1)) > 0
    pauses.succeeded(("abort", 2))
    assert pauses.until(("retire", 1)) == 0


def test_a_thing_that_fails_waits_ever_longer_by_itself(site, context):
    pauses, bad, good = context.pauses, ("retire", 1), ("retire", 2)
    first = pauses.later(bad, 1000.0)
    second = pauses.later(bad, 1000.0)
    assert 1000.0 < first < second
    assert pauses.wait(bad, 1000.0) == second
    assert pauses.wait(good, 1000.0) == 0
    # What is further away than any pause was noted by a clock that was set back.
    assert pauses.wait(bad, 1000.0 - DAY) == 0
    assert pauses.wait(good, 1000.0, not_before=1001.0) == 1001.0
    assert pauses.lasted(bad) > 0
    assert pauses.succeeded(bad)
    assert not pauses.succeeded(bad)
    assert pauses.lasted(bad) == 0


def test_a_pause_ends_in_time_though_the_clock_is_set_back():
    backoff, settings = FailureBackoff(), HTCondor(poll_shortest=0.01, poll_longest=0.01)
    tomorrow = time.time() + DAY
    assert backoff.failed(tomorrow, settings) > tomorrow
    wait_for(lambda: backoff.until <= time.time(), "the end of the pause")
    now = time.time()
    assert backoff.until <= now


def test_a_cancel_knows_its_job_and_does_not_wait_for_ever_for_a_fetch_that_hangs():
    scopes = CancelScopes()
    with scopes.open(1) as scope:
        scopes.close(2)
        scope.check()
        assert scopes.jobs() == (1,)
        scopes.close(1, clearing=0.01)
        with pytest.raises(NoLongerWanted):
            scope.check()
    assert scopes.jobs() == ()
