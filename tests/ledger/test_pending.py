"""What is pending, leased, wrong, counted and dropped; and two processes at once."""

import time
from dataclasses import replace
from functools import partial

import pytest

from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.rows import ALIVE, STATES
from tests.ledger.crowd import Crowd
from tests.ledger.jobs import HOLD, LEASE, MINE, URL, in_state, new_job, planned, prune, submitted

ENDED = sorted(set(STATES) - ALIVE)


def test_pending_aborts_come_with_what_is_needed_to_send_them(jobs):
    batch, ids = submitted(jobs, "a", "b", "c")
    jobs.cancel(ids[0])
    jobs.cancel(ids[2])
    found = [(job.id, job.job_name, job.batch_id) for job in jobs.pending_aborts(*MINE)]
    assert found == [(ids[0], "bg-1-1", batch.id), (ids[2], "bg-1-3", batch.id)]
    assert len(jobs.pending_aborts(*MINE, "submitted", "ended")) == 2
    assert jobs.pending_aborts(*MINE, "sent") == []
    assert jobs.pending_aborts(URL, "another") == []


def test_leases_are_renewed_of_batches_that_htcondor_asks_about(jobs):
    now = time.time()
    asked, (job_id,) = submitted(jobs, "a", name="asked")
    silent, (silent_id,) = submitted(jobs, "b", name="silent")
    gone, (gone_id,) = submitted(jobs, "c", name="gone")
    planned(jobs, "d", name="planned")
    for each in (asked, silent, gone):
        jobs.leased(each.id, now + 100)
    with jobs.store.read() as connection:
        assert connection.execute("SELECT count(*) FROM job").fetchone() == (4,)
    jobs.store.execute("UPDATE job SET last_polled = 0", ())
    jobs.htcondor_polled({job_id: now - 10})
    jobs.htcondor_polled({silent_id: now - 60})
    jobs.htcondor_polled({gone_id: now})
    jobs.hold([gone_id], HOLD)
    assert [row.name for row in jobs.leases(*MINE, now, 200.0, 30.0)] == ["asked"]
    assert jobs.leases(*MINE, now, 50.0, 30.0) == []
    jobs.leased(asked.id, now + 500)
    assert jobs.leases(*MINE, now, 200.0, 30.0) == []


def test_owners_have_the_latest_name_of_their_project(jobs):
    """Who is one, having anything alive or pending: ``test_machine.py``."""
    jobs.accept(replace(new_job("x", account="alive"), project_name="old"))
    jobs.accept(replace(new_job("y", account="alive"), project_name="new"))
    jobs.cancel(jobs.accept(new_job("z", account="nothing")).id)
    submitted(jobs, "a")
    assert jobs.owners() == ((URL, "alive", "new"), (*MINE, ""))


def test_a_projects_trouble_lasts_from_its_beginning_to_its_end(jobs):
    jobs.project_trouble(*MINE, "nobody knows this project")
    assert jobs.troubles() == {}
    jobs.accept(new_job("d"))
    before = time.time()
    jobs.project_trouble(*MINE, "no answer")
    ((words, since),) = jobs.troubles().values()
    assert words == "no answer"
    assert before <= since <= time.time()
    jobs.project_trouble(*MINE, "web stopped")
    assert jobs.troubles() == {MINE: ("web stopped", since)}
    jobs.project_trouble(*MINE, None)
    assert jobs.troubles() == {}


def test_since_when_the_settings_lack_an_owner_is_known(jobs):
    assert jobs.set_unknown(*MINE, True) is None
    jobs.accept(new_job("d"))
    before = time.time()
    since = jobs.set_unknown(*MINE, True)
    assert before <= since <= time.time()
    assert jobs.set_unknown(*MINE, True) == since
    assert jobs.set_unknown(*MINE, False) is None
    assert jobs.set_unknown(*MINE, True) > since


def test_a_jobs_trouble_is_told_until_it_is_over(jobs):
    job_id = in_state(jobs, "finished")
    jobs.job_trouble([job_id], "disk full")
    assert jobs.job(job_id).trouble == "disk full"
    jobs.fetched(job_id, 7, 2.0)
    row = jobs.job(job_id)
    assert (row.trouble, row.exit_code, row.cpu_time) == (None, 7, 2.0)


def test_what_has_changed_since_is_not_dropped(jobs):
    job_id = jobs.accept(new_job("d")).id
    jobs.cancel(job_id)
    assert prune(jobs, jobs.job(job_id).changed) == 0
    assert prune(jobs, jobs.job(job_id).changed + 1) == 1
    with jobs.store.read() as connection:
        assert connection.execute("SELECT count(*) FROM description").fetchone() == (0,)


def test_two_processes_that_accept_the_same_job_get_one(jobs, elsewhere):
    def accept(ledger):
        return {ledger.accept(new_job(f"d{number}")).id for number in range(30)}

    one, other = Crowd(partial(accept, jobs), partial(accept, JobLedger(elsewhere))).join()
    assert one == other
    assert len(one) == 30


def test_of_two_processes_that_plan_the_same_jobs_one_gets_each(jobs, elsewhere):
    ids = [jobs.accept(new_job(str(number))).id for number in range(20)]

    def plan(ledger, name):
        return ledger.plan(*MINE, name, "app", "t", ids, LEASE)

    crowd = Crowd(partial(plan, jobs, "bg-1"), partial(plan, JobLedger(elsewhere), "bg-2"))
    assert sorted(batch is None for batch in crowd.join()) == [False, True]


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_what_is_alive_or_to_be_aborted_is_not_forgotten_by_accident(jobs, state):
    job_id = in_state(jobs, state)
    batch_id = jobs.job(job_id).batch_id
    assert jobs.forget([job_id]) == 0
    jobs.cancel(job_id)
    pending = bool(jobs.pending_aborts(*MINE))
    assert pending == (state == "running")
    assert jobs.forget([job_id, 12345]) == int(not pending)
    assert jobs.forget([job_id], alive=True) == int(pending)
    assert jobs.job(job_id) is None
    assert batch_id is None or jobs.batch(batch_id) is not None
