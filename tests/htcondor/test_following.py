"""Jobs are followed on a local project, over HTTP, through a proxy that can go wrong."""

import math
import re
import uuid

import pytest

from boinc_gahp.fetch.job_end import JobEnd
from boinc_gahp.htcondor import _failures
from boinc_gahp.htcondor._following import Follower
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.ledger.monitoring import overviews
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.submit.control import abort_jobs
from boinc_gahp.submit.query import query_jobs
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.desk import TROUBLES, fail_queries, noting, only_for, refuse
from tests.htcondor.helpers import ONCE, PATIENT, assert_held
from tests.htcondor.onproject import follow, send
from tests.inside import fail_attempts, fail_workunit, finish_workunit


@pytest.fixture
def context(site):
    site.timeouts = PATIENT
    site.reset(poll_shortest=1.0, poll_longest=4.0, poll_all=600.0)
    with site.context() as context:
        yield context


def standing(now):
    """Return a clock that stands still, as if the project answered at once."""
    return lambda: now


def hear(site):
    """Return a list that grows by what is asked in query_batch2."""
    bodies = []
    site.proxy.fail("query_batch2", noting(bodies), times=None)
    return bodies


def for_all(bodies):
    """Return for each request whether it asks for all, not only for news."""
    return [b"<min_mod_time>0<" in body for body in bodies]


def names(bodies):
    return [re.findall(r"<batch_name>(.*?)</batch_name>", body.decode()) for body in bodies]


def test_failed_attempts_are_known_until_a_job_is_done(site, context):
    site.local.pause_volunteers()
    sent = send(site, context, (), ())
    follower = Follower(context, standing)
    follower.poll(1000.0)
    assert follower.task.due(1000.0) <= 1000.0
    follower.task.run(1000.0, lambda: True)
    assert follower.attempts(sent.batch.id) == ""
    fail_attempts(site.local, sent.batch.project_batch_id)
    assert follower.task.due(1001.0) == 1060.0, "a look a minute"
    follower.task.run(1060.0, lambda: True)
    assert follower.attempts(sent.batch.id).startswith(
        "no job is done yet, and 2 attempts have failed, the last (job "
    )
    finish_workunit(site.local, sent.jobs[0].job_name)
    follower.poll(1062.0)
    assert follower.task.due(1200.0) == math.inf
    assert follower.attempts(sent.batch.id) == ""


def polled(site, context):
    """Return when the ledger says that the project last answered."""
    [found] = overviews(context.jobs.store, 0.0, 0.0)
    return found.last_poll


@pytest.mark.long
def test_when_the_project_last_answered_is_written_down_once_a_minute(site, context):
    site.local.pause_volunteers()
    send(site, context)
    follower = Follower(context, standing)
    assert polled(site, context) is None
    follower.poll(1000.0)
    assert polled(site, context) == 1000.0
    follower.poll(1059.0)
    assert polled(site, context) == 1000.0
    site.proxy.fail("*", faultproxy.status(503), times=None)
    follower.poll(2000.0)
    assert polled(site, context) == 1000.0
    site.proxy.heal()
    follower.poll(5000.0)
    assert polled(site, context) == 5000.0
    # The clock was set back.
    follower.poll(3000.0)
    assert polled(site, context) == 3000.0


def test_after_the_first_time_only_news_are_asked_for_until_all_is(site, context):
    site.local.pause_volunteers()
    sent = send(site, context)
    heard = hear(site)
    follower = Follower(context)
    for now in (1000.0, 1001.0, 1599.0, 1600.0, 1601.0):
        follower.poll(now)
    assert for_all(heard) == [True, False, False, True, False]
    later = send(site, context)
    follower.poll(1602.0)
    assert names(heard[-2:]) == [[sent.batch.name], [later.batch.name]]
    assert for_all(heard[-2:]) == [False, True]
    follower.poll(1603.0)
    assert len(names(heard)[-1]) == 2
    # A clock that is set back does not put the look at all jobs off.
    follower.poll(10.0)
    assert for_all(heard[-1:]) == [True]


def test_a_time_that_is_none_is_not_handed_on(site, context):
    site.local.pause_volunteers()
    send(site, context)

    def odd(exchange):
        reply = exchange.forward(plain=True)
        reply.body = re.sub(rb"(<server_time>).*?(<)", rb"\1soon\2", reply.body)
        exchange.send(reply)
        return True

    site.proxy.fail("query_batch2", odd)
    heard = hear(site)
    follower = Follower(context)
    for now in (1000.0, 1001.0, 1002.0):
        follower.poll(now)
    assert for_all(heard) == [True, False]


def test_the_pace_follows_the_news(site, context):
    site.local.pause_volunteers()
    sent = send(site, context)
    follower = Follower(context, standing)

    def pause(now):
        return follower.poll(now) - now

    first = [pause(now) for now in (1000.0, 1001.0, 1002.0, 1003.0, 1004.0, 1005.0)]
    assert first == [1.0, 1.5, 2.25, 3.375, 4.0, 4.0]
    other = send(site, context)
    assert pause(1010.0) == 1.0
    # Not beyond the time to ask for all.
    assert follower.poll(1599.5) == 1600.0
    site.local.resume_volunteers()
    follow(context, sent, "finished", follower=follower)
    follow(context, other, "finished", follower=follower)
    asked = site.proxy.count("query_batch2")
    now = follower._all_at - 100
    assert follower.poll(now) - now > 1.0
    assert site.proxy.count("query_batch2") == asked, "nothing can be new of what is done"


def test_without_jobs_nothing_is_asked(site, context):
    assert Follower(context).poll(1000.0) >= 1001.0
    assert site.proxy.seen == []


def test_a_failed_job_is_held_with_what_is_known(site, context):
    sent = send(site, context, ("--fail", "197"), ())
    follow(context, sent, "failed", "finished")
    job = sent.jobs[0]
    assert job.exit_code == 197
    words = (
        job.job_name,
        f"batch id {_id(sent)}",
        site.proxy.url.split("/")[2],
        "exit status 197: it ran for longer than allowed",
        "exit statuses on the volunteers' computers: 197, 197",
        "BoincRscFpopsBound",
    )
    assert_held(job, HoldCode.FAILED, *words, subcode=197)
    assert "\n" not in job.hold_reason
    assert site.authenticator not in job.hold_reason


def test_an_abort_on_the_projects_site_is_reported(site, context):
    site.local.pause_volunteers()
    sent = send(site, context, (), ())
    # Whatever instances did before.
    fail_attempts(site.local, sent.batch.project_batch_id)
    follower = Follower(context)
    follower.poll(0.0)
    abort_jobs(context.project, [sent.jobs[0].job_name])
    follow(context, sent, "failed", "running", follower=follower)
    words = "was aborted on the BOINC project"
    assert_held(sent.jobs[0], HoldCode.ABORTED, words, subcode=0)


def test_a_job_that_went_well_after_all_is_not_held(site, context):
    site.local.pause_volunteers()
    sent = send(site, context)
    row = sent.job
    fail_workunit(site.local, row.job_name)
    wait_for(lambda: query_jobs(context.project, _id(sent)).jobs[0][1] == "ERROR", "the error")
    # What a result that comes late does to a job's errors.
    site.change("UPDATE workunit SET error_mask = 0 WHERE name = ?", row.job_name)
    assert not _failures.fail(context, row)
    assert sent.states == ["queued"]
    abort_jobs(context.project, [row.job_name])


def _id(sent):
    return sent.batch.project_batch_id


def test_a_failure_that_cannot_be_explained_now_waits(site, context):
    sent = send(site, context, ("--fail", "197"))
    sent.await_end()
    site.timeouts = ONCE
    with site.context() as fresh:
        site.proxy.fail("query_batch", faultproxy.status(503), times=None)
        follower = Follower(fresh)
        with pytest.raises(AssertionError, match="not within"):
            follow(fresh, sent, "failed", follower=follower, timeout=0.5)
        assert sent.states == ["queued"]
        site.proxy.heal()
        follow(fresh, sent, "failed", follower=follower)
    assert sent.job.hold_subcode == 197


def test_of_a_batch_that_is_gone_the_jobs_are_lost_and_others_go_on(site, context):
    site.local.pause_volunteers()
    batches = [send(site, context) for _ in range(5)]
    follower = Follower(context)
    follower.poll(1000.0)
    gone = batches[2]
    site.change("DELETE FROM batch WHERE id = ?", _id(gone))
    site.local.resume_volunteers()
    for sent in batches:
        follow(context, sent, "failed" if sent is gone else "finished", follower=follower)
    assert_held(gone.job, HoldCode.LOST, "no longer has this job", gone.batch.name)


def test_a_batch_whose_name_will_not_do_is_followed_by_its_id(site, context):
    site.local.pause_volunteers()
    odd, foreign, good = (send(site, context) for _ in range(3))
    name = uuid.uuid4().hex
    site.change("UPDATE batch SET name = ?, name_key = ? WHERE id = ?", name, name, _id(odd))
    # Another account's batch of the same name is older.
    site.change(
        "INSERT INTO batch (id, user_id, create_time, name, name_key, app_id) "
        "SELECT -id, user_id + 1, create_time, name, name_key, app_id FROM batch WHERE id = ?",
        _id(foreign),
    )
    site.local.resume_volunteers()
    follower = Follower(context)
    for sent in (good, odd, foreign):
        follow(context, sent, "finished", follower=follower)


def test_a_job_that_its_batch_lacks_is_lost_once_that_is_sure(site, context):
    site.local.pause_volunteers()
    sent = send(site, context, (), ())
    site.change("UPDATE workunit SET batch = -1 WHERE name = ?", sent.jobs[0].job_name)
    # While the batch is not complete a job may be to come.
    site.change("UPDATE batch SET state = 0 WHERE id = ?", _id(sent))
    Follower(context).poll(0.0)
    assert sent.states == ["queued", "queued"]
    site.change("UPDATE batch SET state = 1 WHERE id = ?", _id(sent))
    with site.context() as fresh:
        Follower(fresh).poll(0.0)
    assert sent.states == ["failed", "queued"]
    assert sent.jobs[0].hold_code == HoldCode.LOST


def test_what_the_project_does_not_find_once_is_not_lost(site, context):
    sent = send(site, context, ("--fail", "197"))
    sent.await_end()
    nothing = refuse("no such batch", rpc="query_batch")
    before = site.proxy.count("query_batch")
    # The look at the batch, and the one at the failure.
    for skip in (0, 1):
        site.proxy.fail("query_batch", nothing, skip=skip)
    site.proxy.fail("query_batch2", faultproxy.status(500), times=None)
    site.timeouts = ONCE
    with site.context() as fresh:
        follow(fresh, sent, "failed")
    assert site.proxy.count("query_batch") - before > 3
    assert sent.job.hold_code == HoldCode.FAILED


def test_trouble_of_the_project_is_noted_and_passes(site, context):
    site.local.pause_volunteers()
    one, two = send(site, context), send(site, context)
    site.timeouts = ONCE
    with site.context() as fresh:
        follower = Follower(fresh)
        now = 1000.0
        for case, fault in {"cut openly": faultproxy.cut(0.6, honest=True), **TROUBLES}.items():
            follower.poll(now)
            assert context.jobs.troubles() == {}, case
            site.proxy.fail("*", fault, times=None)
            first = follower.poll(now)
            assert first - now > 0.7, case
            second = follower.poll(first)
            assert second - first > 0.7, case
            now = second + 10.0
            trouble, _ = context.jobs.troubles()[context.owner]
            assert "asked to list jobs" in trouble, case
            site.proxy.heal()
        site.local.resume_volunteers()
        follow(fresh, one, "finished", follower=follower)
        follow(fresh, two, "finished", follower=follower)
    assert context.jobs.troubles() == {}


def test_a_poll_repeats_no_request_and_the_next_process_knows_which_batch_makes_it_fail(
    site, context
):
    site.local.pause_volunteers()
    bad, other = send(site, context), send(site, context)
    before = site.proxy.count("query_batch2")
    fail_queries(site, only_for(faultproxy.status(504), *bad.markers))
    Follower(context).poll(1000.0)
    # Both, and each alone.
    assert site.proxy.count("query_batch2") - before == 3
    site.proxy.heal()
    heard = hear(site)
    Follower(context).poll(1100.0)
    assert names(heard) == [[other.batch.name], [bad.batch.name]]


def test_of_a_failure_there_is_what_helps(site, context):
    site.local.pause_volunteers()
    sent = send(site, context)
    job = JobInfo(1, "j", 0, "error", ("x",), (*range(1, 13), -161, 0))
    end = JobEnd(job, stderr="one\ntwo " + "three " * 90)
    reason = _failures.reason_of(context, sent.job, sent.batch, end)
    assert "exit statuses on the volunteers' computers: ..., 5, 6, 7" in reason
    assert ": exit status -161: an output file was missing; " in reason
    assert "; see that the program makes every output of the app's template; condor_r" in reason
    assert reason.endswith("three three three")
    assert "\n" not in reason
    assert len(reason) < 1000


def test_a_process_that_ends_asks_nothing_more(site, context):
    site.local.pause_volunteers()
    sent = send(site, context)
    context.stopping.set()
    asked = len(site.proxy.seen)
    Follower(context).poll(1000.0)
    assert len(site.proxy.seen) == asked
    assert sent.states == ["queued"]


def test_the_longer_no_job_is_done_the_rarer_are_looks_at_attempts(site, context):
    site.local.pause_volunteers()
    sent = send(site, context)
    follower = follow(context, sent, "queued")
    begin = sent.batch.created
    for minute in range(1, 1441):
        follower.task.run(begin + 60.0 * minute, lambda: True)
    assert 10 < site.proxy.count("query_job") < 70
