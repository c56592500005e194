"""What is owed to a project once jobs end: aborts, retirements and leases."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.htcondor import cleanup
from boinc_gahp.ledger import NewJob
from boinc_gahp.rpc import BatchState
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.helpers import expire_times
from tests.htcondor.payer import Payer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boinc_gahp.htcondor.context import AccountContext
    from boinc_gahp.ledger.jobs import BatchRow
    from boinc_gahp.localproject import LocalProject
    from tests.htcondor.helpers import Site

DAY = 86400.0


@pytest.fixture
def context(site: Site) -> Iterator[AccountContext]:
    site.local.pause_volunteers()
    site.reset(poll_shortest=5.0, poll_longest=300.0)
    with site.context() as context:
        yield context


def accept(context: AccountContext, key: str) -> int:
    job = NewJob(key, context.url, context.account, "", "uppercase", "together", 300, "{}")
    return context.jobs.accept(job).id


def planned(context: AccountContext, site: Site, jobs: int = 2) -> tuple[BatchRow, list[int]]:
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


def submit(
    context: AccountContext, site: Site, batch: BatchRow, names: Sequence[str] | None = None
) -> None:
    """Have the project make the batch, of the jobs with these names (default: of all)."""
    file = site.directory / "in"
    file.write_bytes(b"text")
    names = names or [str(job.job_name) for job in context.jobs.jobs_of(batch.id)]
    context.bridge.submit(
        SubmitRequest(
            batch.name,
            "uppercase",
            [(name, Job(inputs={"in": LocalFile(str(file))})) for name in names],
        )
    )
    context.jobs.submitted(batch.id, 1)


def submitted(context: AccountContext, site: Site, jobs: int = 2) -> tuple[BatchRow, list[int]]:
    """Return a batch that is on the project, with its jobs."""
    batch, ids = planned(context, site, jobs)
    submit(context, site, batch)
    return batch, ids


def finish(context: AccountContext, batch: BatchRow, job_id: int) -> str:
    """Have a job's outputs fetched, as the ledger sees it."""
    job = context.jobs.job(job_id)
    assert job is not None
    context.jobs.statuses(batch.id, {str(job.job_name): "finished"})
    return context.jobs.fetched(job_id, 0, 1.0)


def state_of(context: AccountContext, job_id: int) -> str:
    job = context.jobs.job(job_id)
    assert job is not None
    return job.state


def batch_state(context: AccountContext, batch: BatchRow) -> str:
    row = context.jobs.batch(batch.id)
    assert row is not None
    return row.state


def errors(local: LocalProject, names: list[str]) -> int:
    """Return how many of the workunits have ended in an error."""
    marks = ", ".join("?" * len(names))
    query = f"SELECT count(*) FROM workunit WHERE error_mask != 0 AND name IN ({marks})"
    return int(local.core.db.connection().execute(query, names).fetchone()[0])


def owed(context: AccountContext) -> int:
    return len(context.jobs.pending_aborts(context.url, context.account))


def test_cancelled_jobs_are_aborted_and_the_others_let_be(
    context: AccountContext, site: Site
) -> None:
    _, ids = submitted(context, site, 3)
    names = site.workunits()
    context.jobs.cancel(ids[0])
    context.jobs.cancel(ids[2])
    payer = Payer(context)
    assert payer.due(time.time()) <= time.time()
    payer.pay(time.time())
    assert owed(context) == 0
    assert errors(site.local, names) == 2
    assert errors(site.local, [names[1]]) == 0
    assert payer.due(time.time()) > time.time() + 30
    # What HTCondor does not ask for by these names is not remembered for its queries.
    assert site.proxy.count("abort_jobs") == 1


def test_an_abort_waits_until_it_is_certain_what_the_project_has(
    context: AccountContext, site: Site
) -> None:
    batch, ids = planned(context, site, 3)
    context.jobs.cancel(ids[0])
    payer = Payer(context)
    payer.pay(time.time())
    assert site.proxy.count("abort_jobs") == 0
    assert owed(context) == 1
    # It goes without the one that was cancelled before, so that the project never has that.
    assert context.jobs.about_to_send(batch.id, 7, ids[1:]) == "go"
    assert owed(context) == 0
    context.jobs.cancel(ids[1])
    payer.pay(time.time())
    assert site.proxy.count("abort_jobs") == 0
    assert owed(context) == 1
    submit(context, site, batch)
    payer.pay(time.time())
    assert owed(context) == 0
    assert errors(site.local, site.workunits()) == 1


def test_jobs_that_the_project_does_not_have_keep_no_others_from_their_abort(
    context: AccountContext, site: Site
) -> None:
    batch, ids = planned(context, site, 3)
    (left_out, cancelled, alive) = ids
    context.jobs.cancel(left_out)
    names = [f"{batch.name}-{number}" for number in (2, 3)]
    submit(context, site, batch, names)
    context.jobs.cancel(cancelled)
    Payer(context).pay(time.time())
    assert owed(context) == 0
    assert errors(site.local, names) == 1
    assert state_of(context, alive) == "queued"


def test_an_abort_that_the_projects_database_has_no_time_for_stays_owed(
    context: AccountContext, site: Site
) -> None:
    site.local.pause_volunteers()
    batch, (job_id, _) = submitted(context, site)
    context.jobs.cancel(job_id)
    words = b"Lock wait timeout exceeded; try restarting transaction"
    error = b"<error><error_num>-1</error_num><error_msg>%s</error_msg></error>" % words
    site.proxy.fail("abort_jobs", faultproxy.body(b"<abort_jobs>%s</abort_jobs>" % error))
    payer = Payer(context)
    payer.pay(time.time())
    assert owed(context) == 1
    payer.pay(time.time() + 10)
    assert (owed(context), errors(site.local, [f"{batch.name}-1"])) == (0, 1)


@pytest.mark.parametrize("trouble", ["stopped", "lost"])
def test_what_a_project_that_is_down_is_owed_stays_owed_and_is_paid_later(
    context: AccountContext, site: Site, trouble: str
) -> None:
    batch, ids = submitted(context, site)
    context.jobs.cancel(ids[0])
    context.jobs.cancel(ids[1])
    assert batch_state(context, batch) == "ended"
    payer = Payer(context)
    if trouble == "stopped":
        site.local.stop_web()
    else:
        site.proxy.fail("*", faultproxy.status(503), times=None)
    now = time.time()
    payer.pay(now)
    assert owed(context) == 2
    assert batch_state(context, batch) == "ended"
    ((text, since),) = context.jobs.troubles().values()
    assert text
    assert abs(since - now) < 30
    # Not at once again.
    assert payer.due(time.time()) > time.time()
    seen = len(site.proxy.seen)
    payer.pay(now)
    assert len(site.proxy.seen) == seen
    site.heal()
    site.local.pause_volunteers()
    payer.pay(payer.due(time.time()))
    assert owed(context) == 0
    assert batch_state(context, batch) == "retired"
    assert site.batch_states() == [BatchState.RETIRED]
    assert context.jobs.troubles() == {}


def test_a_batch_is_not_retired_before_its_cancelled_jobs_are_aborted(
    context: AccountContext, site: Site
) -> None:
    batch, ids = submitted(context, site)
    for job_id in ids:
        context.jobs.cancel(job_id)
    Payer(context).pay(time.time())
    seen = site.proxy.seen
    assert seen.index("abort_jobs") < seen.index("retire_batch")
    assert batch_state(context, batch) == "retired"
    assert errors(site.local, site.workunits()) == 2


def test_the_last_job_is_done_when_its_batch_is_retired(
    context: AccountContext, site: Site
) -> None:
    batch, ids = submitted(context, site)
    assert finish(context, batch, ids[0]) == "done"
    payer = Payer(context)
    assert finish(context, batch, ids[1]) == "fetched"
    until = payer.cleanup.close_overdue(time.time())
    assert until is not None
    assert until > time.time()
    assert state_of(context, ids[1]) == "fetched"
    payer.pay(time.time())
    assert state_of(context, ids[1]) == "done"
    assert batch_state(context, batch) == "retired"
    assert site.batch_states() == [BatchState.RETIRED]
    assert payer.cleanup.close_overdue(time.time()) is None


def test_the_last_job_waits_for_the_retirement_only_so_long(
    context: AccountContext, site: Site
) -> None:
    site.local.stop_web(False)
    batch, ids = submitted(context, site, 1)
    finish(context, batch, ids[0])
    site.local.stop_web()
    payer = Payer(context)
    payer.pay(time.time())
    until = payer.cleanup.close_overdue(time.time())
    assert until is not None
    assert state_of(context, ids[0]) == "fetched"
    # Another process goes on; how long the job has waited stands in the ledger.
    payer = Payer(context)
    assert payer.cleanup.close_overdue(until + 0.01) is None
    assert state_of(context, ids[0]) == "done"
    assert batch_state(context, batch) == "ended"
    site.heal()
    payer.pay(time.time() + 400)
    assert batch_state(context, batch) == "retired"


def test_a_batch_that_is_not_on_the_project_counts_as_retired(
    context: AccountContext, site: Site
) -> None:
    batch, ids = planned(context, site)
    for job_id in ids:
        context.jobs.cancel(job_id)
    assert batch_state(context, batch) == "ended"
    Payer(context).pay(time.time())
    assert batch_state(context, batch) == "retired"


def test_a_batch_that_somebody_may_be_making_is_let_be(context: AccountContext, site: Site) -> None:
    batch, ids = planned(context, site)
    for job_id in ids:
        context.jobs.cancel(job_id)
    payer = Payer(context, is_sending={batch.id}.__contains__)
    payer.pay(time.time())
    assert site.proxy.count("retire_batch") == 0
    assert batch_state(context, batch) == "ended"


def test_one_batch_that_the_project_refuses_to_retire_keeps_no_other_from_it(
    context: AccountContext, site: Site
) -> None:
    first, ids = submitted(context, site, 1)
    second, more = submitted(context, site, 1)
    for job_id in (*ids, *more):
        context.jobs.cancel(job_id)
    refusal = faultproxy.body(
        b"<retire_batch><error><error_num>-1</error_num><error_msg>not now</error_msg></error>"
        b"</retire_batch>"
    )
    site.proxy.fail("retire_batch", refusal)
    payer = Payer(context)
    payer.pay(time.time())
    assert batch_state(context, first) == "ended"
    assert batch_state(context, second) == "retired"
    row = context.jobs.batch(first.id)
    assert row is not None
    assert "not now" in str(row.trouble)
    assert row.not_before > time.time()
    payer.pay(row.not_before)
    assert batch_state(context, first) == "retired"


def test_a_retirement_that_a_list_of_batches_undoes_is_done_once_more(
    context: AccountContext, site: Site
) -> None:
    batch, ids = submitted(context, site, 1)
    context.jobs.cancel(ids[0])

    def undo(exchange: faultproxy.Exchange) -> bool:
        reply = exchange.forward()
        with site.local.core.db.write() as connection:
            # As get_batch_params does, which has read the batch before.
            connection.execute("UPDATE batch SET state = 2 WHERE name = ?", (batch.name,))
        exchange.send(reply)
        return True

    site.proxy.fail("retire_batch", undo)
    payer = Payer(context)
    now = time.time()
    payer.pay(now)
    assert batch_state(context, batch) == "retired"
    assert site.batch_states() == [BatchState.COMPLETE]
    payer.pay(now + cleanup.RETIRE_AGAIN)
    assert site.batch_states() == [BatchState.RETIRED]
    assert site.proxy.count("retire_batch") == 2
    payer.pay(now + 2 * cleanup.RETIRE_AGAIN)
    assert site.proxy.count("retire_batch") == 2


def test_leases_are_renewed_while_htcondor_asks_about_the_jobs(
    context: AccountContext, site: Site
) -> None:
    lease = context.settings.htcondor.lease
    first, ids = submitted(context, site, 1)
    second, _ = submitted(context, site, 1)
    now = time.time()
    payer = Payer(context)
    payer.pay(now)
    assert site.proxy.count("set_expire_time") == 0
    later = now + 2 * DAY
    context.jobs.htcondor_polled(ids, later)
    payer.pay(later)
    assert site.proxy.count("set_expire_time") == 2
    assert expire_times(site) == pytest.approx([later + lease] * 2, abs=2)
    payer.pay(later)
    assert site.proxy.count("set_expire_time") == 2
    # The second's job was not asked about for longer than a lease lasts.
    much_later = now + lease + DAY
    context.jobs.htcondor_polled(ids, much_later)
    payer.pay(much_later)
    assert expire_times(site) == pytest.approx([much_later + lease, later + lease], abs=2)
    rows = [context.jobs.batch(batch.id) for batch in (first, second)]
    assert [row.lease_until for row in rows if row] == [much_later + lease, later + lease]


def test_a_batch_that_the_project_has_lost_is_asked_about_leases_once(
    context: AccountContext, site: Site
) -> None:
    batch, ids = planned(context, site, 1)
    context.jobs.submitted(batch.id, 1)
    later = time.time() + 2 * DAY
    context.jobs.htcondor_polled(ids, later)
    payer = Payer(context)
    payer.pay(later)
    payer.pay(later)
    assert site.proxy.count("set_expire_time") == 1


def test_a_clock_that_is_set_back_by_a_day_puts_nothing_off(
    context: AccountContext, site: Site
) -> None:
    batch, job_ids = submitted(context, site)
    payer = Payer(context)
    tomorrow = time.time() + 86400
    payer.pay(tomorrow)
    for job_id in job_ids:
        finish(context, batch, job_id)
    context.jobs.postpone(batch.id, tomorrow + 60, "it was tried tomorrow")
    now = time.time()
    assert payer.due(now) <= now
    payer.pay(now)
    assert batch_state(context, batch) == "retired"
    assert payer.due(now) > now
    assert payer.cleanup.close_overdue(now - 3600) is None


def test_what_ended_long_ago_is_forgotten(context: AccountContext, site: Site) -> None:
    _, ids = submitted(context, site, 2)
    context.jobs.cancel(ids[0])
    context.jobs.cancel(ids[1])
    payer = Payer(context)
    payer.pay(time.time())
    wait_for(lambda: owed(context) == 0, "the aborts")
    payer.cleanup.prune(time.time())
    assert context.jobs.job(ids[0]) is not None
    payer.cleanup.prune(time.time() + 31 * DAY)
    assert context.jobs.job(ids[0]) is None
    assert context.jobs.batches(context.url, context.account) == []


def test_nothing_is_begun_when_the_process_is_about_to_end_or_time_is_over(
    context: AccountContext, site: Site
) -> None:
    _, ids = submitted(context, site, 1)
    context.jobs.cancel(ids[0])
    Payer(context).pay(time.time(), goes_on=False)
    context.stopping.set()
    Payer(context).pay(time.time())
    assert owed(context) == 1
