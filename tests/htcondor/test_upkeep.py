"""What a project is sent once jobs end: aborts, retirements and leases."""

import time

import pytest

from boinc_gahp.htcondor import _upkeep
from boinc_gahp.states import BatchState
from tests import faultproxy
from tests.htcondor.desk import refuse
from tests.htcondor.helpers import expire_times
from tests.htcondor.onproject import plan, send
from tests.htcondor.task_runner import TaskRunner

DAY = 86400.0


@pytest.fixture
def context(site):
    site.local.pause_volunteers()
    site.reset(poll_shortest=5.0, poll_longest=300.0)
    with site.context() as context:
        yield context


def cancel(context, *jobs):
    for job in jobs:
        context.jobs.cancel(job.id)


def finish(context, job):
    """Have a job's outputs fetched, as the ledger sees it."""
    context.jobs.statuses(job.batch_id, {job.job_name: "finished"})
    return context.jobs.fetched(job.id, 0, 1.0)


def pending(context):
    return len(context.jobs.pending_aborts(*context.owner))


def test_cancelled_jobs_are_aborted_and_the_others_let_be(context, site):
    sent = send(site, context, (), (), ())
    one, _, other = sent.jobs
    cancel(context, one, other)
    runner = TaskRunner(context)
    assert runner.due(time.time()) <= time.time()
    runner.run(time.time())
    assert pending(context) == 0
    assert site.failed() == [one.job_name, other.job_name]
    assert runner.due(time.time()) > time.time() + 30
    # What HTCondor does not ask for by these names is not remembered for its queries.
    assert site.proxy.count("abort_jobs") == 1


def test_a_batch_with_the_same_id_on_a_project_that_began_anew_is_left_alone(context, site):
    ended, strange = send(site, context), send(site, context)
    its_id = ended.batch.project_batch_id
    finish(context, ended.job)
    site.change("DELETE FROM batch WHERE id = ?", its_id)
    site.change("UPDATE batch SET id = ? WHERE name = ?", its_id, strange.batch.name)
    runner = TaskRunner(context)
    runner.run(time.time())
    runner.run(time.time() + 2 * _upkeep.RETIRE_AGAIN)
    assert ended.batch.state == "retired"
    assert site.batch_states() == [BatchState.IN_PROGRESS]


def test_an_abort_waits_until_it_is_certain_what_the_project_has(context, site):
    sent = plan(site, context, (), (), ())
    before, meanwhile, wanted = sent.jobs
    cancel(context, before)
    runner = TaskRunner(context)
    runner.run(time.time())
    assert site.proxy.count("abort_jobs") == 0
    assert pending(context) == 1
    # It goes without the one that was cancelled before, so that the project never has that.
    assert context.jobs.about_to_send(sent.batch_id, 7, [meanwhile.id, wanted.id]) == "go"
    assert pending(context) == 0
    cancel(context, meanwhile)
    runner.run(time.time())
    assert site.proxy.count("abort_jobs") == 0
    assert pending(context) == 1
    sent.submit()
    runner.run(time.time())
    assert pending(context) == 0
    assert site.failed() == [meanwhile.job_name]


@pytest.mark.parametrize("trouble", ["stopped", "lost"])
def test_what_is_to_be_sent_to_a_project_that_is_down_stays_pending_and_is_sent_later(
    context, site, trouble
):
    sent = send(site, context, (), ())
    cancel(context, *sent.jobs)
    assert sent.batch.state == "ended"
    runner = TaskRunner(context)
    if trouble == "stopped":
        site.local.core.web_stopped = True
    else:
        site.proxy.fail("*", faultproxy.status(503), times=None)
    now = time.time()
    runner.run(now)
    assert pending(context) == 2
    assert sent.batch.state == "ended"
    ((text, since),) = context.jobs.troubles().values()
    assert text
    assert abs(since - now) < 30
    # Not at once again.
    assert runner.due(time.time()) > time.time()
    seen = len(site.proxy.seen)
    runner.run(now)
    assert len(site.proxy.seen) == seen
    site.heal()
    site.local.pause_volunteers()
    runner.run(runner.due(time.time()))
    assert site.failed() == [job.job_name for job in sent.jobs]
    # The batch is not retired before that.
    assert site.proxy.seen[-2:] == ["abort_jobs", "retire_batch"]
    assert pending(context) == 0
    assert sent.batch.state == "retired"
    assert site.batch_states() == [BatchState.RETIRED]
    assert context.jobs.troubles() == {}


def test_the_last_job_is_done_when_its_batch_is_retired(context, site):
    sent = send(site, context, (), ())
    runner = TaskRunner(context)
    assert [finish(context, job) for job in sent.jobs] == ["done", "fetched"]
    assert runner.upkeep.close_overdue(time.time()) > time.time()
    assert sent.states == ["done", "fetched"]
    runner.run(time.time())
    assert sent.states == ["done", "done"]
    assert sent.batch.state == "retired"
    assert site.batch_states() == [BatchState.RETIRED]
    assert runner.upkeep.close_overdue(time.time()) is None


def test_the_last_job_waits_for_the_retirement_only_so_long(context, site):
    sent = send(site, context)
    finish(context, sent.job)
    site.local.core.web_stopped = True
    runner = TaskRunner(context)
    runner.run(time.time())
    until = runner.upkeep.close_overdue(time.time())
    assert sent.states == ["fetched"]
    # Another process goes on; how long the job has waited stands in the ledger.
    runner = TaskRunner(context)
    assert runner.upkeep.close_overdue(until + 0.01) is None
    assert sent.states == ["done"]
    assert sent.batch.state == "ended"
    site.heal()
    runner.run(time.time() + 400)
    assert sent.batch.state == "retired"


@pytest.mark.parametrize("is_sending", [False, True])
def test_a_batch_that_is_not_on_the_project_is_retired_unless_somebody_may_be_making_it(
    context, site, is_sending
):
    sent = plan(site, context, (), ())
    cancel(context, *sent.jobs)
    assert sent.batch.state == "ended"
    TaskRunner(context, is_sending=lambda _: is_sending).run(time.time())
    assert site.proxy.count("retire_batch") == (not is_sending)
    assert sent.batch.state == ("ended" if is_sending else "retired")


def test_one_batch_that_the_project_refuses_to_retire_keeps_no_other_from_it(context, site):
    first, second = send(site, context), send(site, context)
    cancel(context, first.job, second.job)
    site.proxy.fail("retire_batch", refuse("not now", rpc="retire_batch"))
    runner = TaskRunner(context)
    runner.run(time.time())
    assert (first.batch.state, second.batch.state) == ("ended", "retired")
    assert "not now" in first.batch.trouble
    assert first.batch.not_before > time.time()
    runner.run(first.batch.not_before)
    assert first.batch.state == "retired"


def test_a_retirement_that_a_list_of_batches_undoes_is_done_once_more(context, site):
    sent = send(site, context)
    cancel(context, sent.job)

    def undo(exchange):
        reply = exchange.forward()
        # As get_batch_params does, which has read the batch before.
        site.change("UPDATE batch SET state = 2 WHERE name = ?", sent.batch.name)
        exchange.send(reply)
        return True

    site.proxy.fail("retire_batch", undo)
    runner = TaskRunner(context)
    now = time.time()
    runner.run(now)
    assert sent.batch.state == "retired"
    assert site.batch_states() == [BatchState.COMPLETE]
    for later in (1, 2):
        runner.run(now + later * _upkeep.RETIRE_AGAIN)
        assert site.batch_states() == [BatchState.RETIRED]
        assert site.proxy.count("retire_batch") == 2


def test_leases_are_renewed_while_htcondor_asks_about_the_jobs(context, site):
    now, lease = time.time(), context.settings.htcondor.lease
    first, second = (send(site, context, lease=now + lease) for _ in range(2))
    runner = TaskRunner(context)
    runner.run(now)
    assert site.proxy.count("set_expire_time") == 0
    later = now + 2 * DAY
    context.jobs.htcondor_polled({first.job.id: later})
    runner.run(later)
    assert site.proxy.count("set_expire_time") == 2
    assert expire_times(site) == pytest.approx([later + lease] * 2, abs=2)
    runner.run(later)
    assert site.proxy.count("set_expire_time") == 2
    # The second's job was not asked about for longer than a lease lasts.
    much_later = now + lease + DAY
    context.jobs.htcondor_polled({first.job.id: much_later})
    runner.run(much_later)
    assert expire_times(site) == pytest.approx([much_later + lease, later + lease], abs=2)
    assert first.batch.lease_until == much_later + lease
    assert second.batch.lease_until == later + lease


def test_a_batch_that_the_project_has_lost_is_asked_about_leases_once(context, site):
    now = time.time()
    sent = plan(site, context, lease=now + context.settings.htcondor.lease)
    context.jobs.submitted(sent.batch_id, 1)
    later = now + 2 * DAY
    context.jobs.htcondor_polled({sent.job.id: later})
    runner = TaskRunner(context)
    runner.run(later)
    runner.run(later)
    assert site.proxy.count("set_expire_time") == 1


def test_a_clock_that_is_set_back_by_a_day_puts_nothing_off(context, site):
    sent = send(site, context, (), ())
    runner = TaskRunner(context)
    tomorrow = time.time() + DAY
    runner.run(tomorrow)
    for job in sent.jobs:
        finish(context, job)
    context.jobs.postpone(sent.batch_id, tomorrow + 60, "it was tried tomorrow")
    now = time.time()
    assert runner.due(now) <= now
    runner.run(now)
    assert sent.batch.state == "retired"
    assert runner.due(now) > now
    assert runner.upkeep.close_overdue(now - 3600) is None


def test_nothing_is_begun_when_the_process_is_about_to_end_or_time_is_over(context, site):
    sent = send(site, context)
    cancel(context, sent.job)
    TaskRunner(context).run(time.time(), goes_on=False)
    context.stopping.set()
    TaskRunner(context).run(time.time())
    assert pending(context) == 1
