"""What a project is sent once jobs end: aborts, retirements and leases."""

import time

import pytest

from boinc_gahp.htcondor import _cleanup
from boinc_gahp.ledger.rows import NewJob
from boinc_gahp.states import BatchState
from boinc_gahp.submit import engine
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from tests import faultproxy
from tests.htcondor.helpers import expire_times
from tests.htcondor.task_runner import TaskRunner

DAY = 86400.0


@pytest.fixture
def context(site):
    site.local.pause_volunteers()
    site.reset(poll_shortest=5.0, poll_longest=300.0)
    with site.context() as context:
        yield context


def accept(context, key):
    job = NewJob(key, context.url, context.account, "", "uppercase", "together", 300, "{}")
    return context.jobs.accept(job).id


def planned(context, site, jobs=2):
    """Return a batch that is planned, with its jobs."""
    batches = len(context.jobs.batches(context.url, context.account))
    ids = [accept(context, f"batch {batches} job {number}") for number in range(jobs)]
    name = f"bg-{site.directory.name}-{batches}"
    lease = time.time() + context.settings.htcondor.lease
    batch = context.jobs.plan(
        context.url, context.account, name, "uppercase", "together", ids, lease
    )
    assert batch is not None
    return batch, ids


def submit(context, site, batch, names=None):
    """Have the project make the batch, of the jobs with these names (default: of all)."""
    file = site.directory / "in"
    file.write_bytes(b"text")
    names = names or [str(job.job_name) for job in context.jobs.jobs_of(batch.id)]
    engine.submit(
        context.project,
        SubmitRequest(
            batch.name,
            "uppercase",
            [(name, Job(inputs={"in": LocalFile(str(file))})) for name in names],
        ),
    )
    context.jobs.submitted(batch.id, 1)


def submitted(context, site, jobs=2):
    """Return a batch that is on the project, with its jobs."""
    batch, ids = planned(context, site, jobs)
    submit(context, site, batch)
    return batch, ids


def finish(context, batch, job_id):
    """Have a job's outputs fetched, as the ledger sees it."""
    job = context.jobs.job(job_id)
    assert job is not None
    context.jobs.statuses(batch.id, {str(job.job_name): "finished"})
    return context.jobs.fetched(job_id, 0, 1.0)


def state_of(context, job_id):
    job = context.jobs.job(job_id)
    assert job is not None
    return job.state


def batch_state(context, batch):
    row = context.jobs.batch(batch.id)
    assert row is not None
    return row.state


def errors(local, names):
    """Return how many of the workunits have ended in an error."""
    marks = ", ".join("?" * len(names))
    query = f"SELECT count(*) FROM workunit WHERE error_mask != 0 AND name IN ({marks})"
    return int(local.core.db.connection().execute(query, names).fetchone()[0])


def pending(context):
    return len(context.jobs.pending_aborts(context.url, context.account))


def test_cancelled_jobs_are_aborted_and_the_others_let_be(context, site):
    _, ids = submitted(context, site, 3)
    names = site.workunits()
    context.jobs.cancel(ids[0])
    context.jobs.cancel(ids[2])
    runner = TaskRunner(context)
    assert runner.due(time.time()) <= time.time()
    runner.run(time.time())
    assert pending(context) == 0
    assert errors(site.local, names) == 2
    assert errors(site.local, [names[1]]) == 0
    assert runner.due(time.time()) > time.time() + 30
    # What HTCondor does not ask for by these names is not remembered for its queries.
    assert site.proxy.count("abort_jobs") == 1


def test_an_abort_waits_until_it_is_certain_what_the_project_has(context, site):
    batch, ids = planned(context, site, 3)
    context.jobs.cancel(ids[0])
    runner = TaskRunner(context)
    runner.run(time.time())
    assert site.proxy.count("abort_jobs") == 0
    assert pending(context) == 1
    # It goes without the one that was cancelled before, so that the project never has that.
    assert context.jobs.about_to_send(batch.id, 7, ids[1:]) == "go"
    assert pending(context) == 0
    context.jobs.cancel(ids[1])
    runner.run(time.time())
    assert site.proxy.count("abort_jobs") == 0
    assert pending(context) == 1
    submit(context, site, batch)
    runner.run(time.time())
    assert pending(context) == 0
    assert errors(site.local, site.workunits()) == 1


def test_jobs_that_the_project_does_not_have_keep_no_others_from_their_abort(context, site):
    batch, ids = planned(context, site, 3)
    (left_out, cancelled, alive) = ids
    context.jobs.cancel(left_out)
    names = [f"{batch.name}-{number}" for number in (2, 3)]
    submit(context, site, batch, names)
    context.jobs.cancel(cancelled)
    TaskRunner(context).run(time.time())
    assert pending(context) == 0
    assert errors(site.local, names) == 1
    assert state_of(context, alive) == "queued"


def test_an_abort_that_the_projects_database_has_no_time_for_stays_pending(context, site):
    site.local.pause_volunteers()
    batch, (job_id, _) = submitted(context, site)
    context.jobs.cancel(job_id)
    words = b"Lock wait timeout exceeded; try restarting transaction"
    error = b"<error><error_num>-1</error_num><error_msg>%s</error_msg></error>" % words
    site.proxy.fail("abort_jobs", faultproxy.body(b"<abort_jobs>%s</abort_jobs>" % error))
    runner = TaskRunner(context)
    runner.run(time.time())
    assert pending(context) == 1
    runner.run(time.time() + 10)
    assert (pending(context), errors(site.local, [f"{batch.name}-1"])) == (0, 1)


@pytest.mark.parametrize("trouble", ["stopped", "lost"])
def test_what_is_to_be_sent_to_a_project_that_is_down_stays_pending_and_is_sent_later(
    context, site, trouble
):
    batch, ids = submitted(context, site)
    context.jobs.cancel(ids[0])
    context.jobs.cancel(ids[1])
    assert batch_state(context, batch) == "ended"
    runner = TaskRunner(context)
    if trouble == "stopped":
        site.local.core.web_stopped = True
    else:
        site.proxy.fail("*", faultproxy.status(503), times=None)
    now = time.time()
    runner.run(now)
    assert pending(context) == 2
    assert batch_state(context, batch) == "ended"
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
    assert pending(context) == 0
    assert batch_state(context, batch) == "retired"
    assert site.batch_states() == [BatchState.RETIRED]
    assert context.jobs.troubles() == {}


def test_a_batch_is_not_retired_before_its_cancelled_jobs_are_aborted(context, site):
    batch, ids = submitted(context, site)
    for job_id in ids:
        context.jobs.cancel(job_id)
    TaskRunner(context).run(time.time())
    seen = site.proxy.seen
    assert seen.index("abort_jobs") < seen.index("retire_batch")
    assert batch_state(context, batch) == "retired"
    assert errors(site.local, site.workunits()) == 2


def test_the_last_job_is_done_when_its_batch_is_retired(context, site):
    batch, ids = submitted(context, site)
    assert finish(context, batch, ids[0]) == "done"
    runner = TaskRunner(context)
    assert finish(context, batch, ids[1]) == "fetched"
    until = runner.cleanup.close_overdue(time.time())
    assert until is not None
    assert until > time.time()
    assert state_of(context, ids[1]) == "fetched"
    runner.run(time.time())
    assert state_of(context, ids[1]) == "done"
    assert batch_state(context, batch) == "retired"
    assert site.batch_states() == [BatchState.RETIRED]
    assert runner.cleanup.close_overdue(time.time()) is None


def test_the_last_job_waits_for_the_retirement_only_so_long(context, site):
    site.local.core.web_stopped = False
    batch, ids = submitted(context, site, 1)
    finish(context, batch, ids[0])
    site.local.core.web_stopped = True
    runner = TaskRunner(context)
    runner.run(time.time())
    until = runner.cleanup.close_overdue(time.time())
    assert until is not None
    assert state_of(context, ids[0]) == "fetched"
    # Another process goes on; how long the job has waited stands in the ledger.
    runner = TaskRunner(context)
    assert runner.cleanup.close_overdue(until + 0.01) is None
    assert state_of(context, ids[0]) == "done"
    assert batch_state(context, batch) == "ended"
    site.heal()
    runner.run(time.time() + 400)
    assert batch_state(context, batch) == "retired"


def test_a_batch_that_is_not_on_the_project_counts_as_retired(context, site):
    batch, ids = planned(context, site)
    for job_id in ids:
        context.jobs.cancel(job_id)
    assert batch_state(context, batch) == "ended"
    TaskRunner(context).run(time.time())
    assert batch_state(context, batch) == "retired"


def test_a_batch_that_somebody_may_be_making_is_let_be(context, site):
    batch, ids = planned(context, site)
    for job_id in ids:
        context.jobs.cancel(job_id)
    runner = TaskRunner(context, is_sending={batch.id}.__contains__)
    runner.run(time.time())
    assert site.proxy.count("retire_batch") == 0
    assert batch_state(context, batch) == "ended"


def test_one_batch_that_the_project_refuses_to_retire_keeps_no_other_from_it(context, site):
    first, ids = submitted(context, site, 1)
    second, more = submitted(context, site, 1)
    for job_id in (*ids, *more):
        context.jobs.cancel(job_id)
    refusal = faultproxy.body(
        b"<retire_batch><error><error_num>-1</error_num><error_msg>not now</error_msg></error>"
        b"</retire_batch>"
    )
    site.proxy.fail("retire_batch", refusal)
    runner = TaskRunner(context)
    runner.run(time.time())
    assert batch_state(context, first) == "ended"
    assert batch_state(context, second) == "retired"
    row = context.jobs.batch(first.id)
    assert row is not None
    assert "not now" in str(row.trouble)
    assert row.not_before > time.time()
    runner.run(row.not_before)
    assert batch_state(context, first) == "retired"


def test_a_retirement_that_a_list_of_batches_undoes_is_done_once_more(context, site):
    batch, ids = submitted(context, site, 1)
    context.jobs.cancel(ids[0])

    def undo(exchange):
        reply = exchange.forward()
        with site.local.core.db.write() as connection:
            # As get_batch_params does, which has read the batch before.
            connection.execute("UPDATE batch SET state = 2 WHERE name = ?", (batch.name,))
        exchange.send(reply)
        return True

    site.proxy.fail("retire_batch", undo)
    runner = TaskRunner(context)
    now = time.time()
    runner.run(now)
    assert batch_state(context, batch) == "retired"
    assert site.batch_states() == [BatchState.COMPLETE]
    runner.run(now + _cleanup.RETIRE_AGAIN)
    assert site.batch_states() == [BatchState.RETIRED]
    assert site.proxy.count("retire_batch") == 2
    runner.run(now + 2 * _cleanup.RETIRE_AGAIN)
    assert site.proxy.count("retire_batch") == 2


def test_leases_are_renewed_while_htcondor_asks_about_the_jobs(context, site):
    lease = context.settings.htcondor.lease
    first, ids = submitted(context, site, 1)
    second, _ = submitted(context, site, 1)
    now = time.time()
    runner = TaskRunner(context)
    runner.run(now)
    assert site.proxy.count("set_expire_time") == 0
    later = now + 2 * DAY
    context.jobs.htcondor_polled(dict.fromkeys(ids, later))
    runner.run(later)
    assert site.proxy.count("set_expire_time") == 2
    assert expire_times(site) == pytest.approx([later + lease] * 2, abs=2)
    runner.run(later)
    assert site.proxy.count("set_expire_time") == 2
    # The second's job was not asked about for longer than a lease lasts.
    much_later = now + lease + DAY
    context.jobs.htcondor_polled(dict.fromkeys(ids, much_later))
    runner.run(much_later)
    assert expire_times(site) == pytest.approx([much_later + lease, later + lease], abs=2)
    rows = [context.jobs.batch(batch.id) for batch in (first, second)]
    assert [row.lease_until for row in rows if row] == [much_later + lease, later + lease]


def test_a_batch_that_the_project_has_lost_is_asked_about_leases_once(context, site):
    batch, ids = planned(context, site, 1)
    context.jobs.submitted(batch.id, 1)
    later = time.time() + 2 * DAY
    context.jobs.htcondor_polled(dict.fromkeys(ids, later))
    runner = TaskRunner(context)
    runner.run(later)
    runner.run(later)
    assert site.proxy.count("set_expire_time") == 1


def test_a_clock_that_is_set_back_by_a_day_puts_nothing_off(context, site):
    batch, job_ids = submitted(context, site)
    runner = TaskRunner(context)
    tomorrow = time.time() + 86400
    runner.run(tomorrow)
    for job_id in job_ids:
        finish(context, batch, job_id)
    context.jobs.postpone(batch.id, tomorrow + 60, "it was tried tomorrow")
    now = time.time()
    assert runner.due(now) <= now
    runner.run(now)
    assert batch_state(context, batch) == "retired"
    assert runner.due(now) > now
    assert runner.cleanup.close_overdue(now - 3600) is None


def test_nothing_is_begun_when_the_process_is_about_to_end_or_time_is_over(context, site):
    _, ids = submitted(context, site, 1)
    context.jobs.cancel(ids[0])
    TaskRunner(context).run(time.time(), goes_on=False)
    context.stopping.set()
    TaskRunner(context).run(time.time())
    assert pending(context) == 1
