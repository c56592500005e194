"""Batches: which change is made from which state, and what every other state refuses."""

import time

import pytest

from boinc_gahp.errors import LedgerError
from tests.ledger.jobs import (
    LEASE,
    MINE,
    new_job,
    planned,
)


def test_a_batch_has_the_accounts_jobs_in_their_order_with_names_and_a_lease(jobs):
    """Which jobs are taken at all: ``test_machine.py``."""
    ids = [jobs.accept(new_job(str(number))).id for number in range(12)]
    other = jobs.accept(new_job("other", account="another")).id
    batch = jobs.plan(*MINE, "bg-1", "uppercase", "t", [*ids[::-1], other, 99], LEASE)
    assert batch == jobs.batch(batch.id)
    assert (batch.name, batch.project_batch_id, batch.lease_until) == ("bg-1", None, LEASE)
    named = [(job.id, job.job_name) for job in jobs.jobs_of(batch.id)]
    assert named == [(job_id, f"bg-1-{n}") for n, job_id in enumerate(ids[::-1], 1)]
    jobs.cancel(ids[2])
    assert [job.id for job in jobs.jobs_of(batch.id, "cancelled", "running")] == [ids[2]]
    assert len(jobs.jobs_of(batch.id, "sending")) == 11


def test_a_batchs_name_is_used_once(jobs):
    planned(jobs, "a")
    with pytest.raises(LedgerError, match="UNIQUE"):
        planned(jobs, "b")
    assert len(jobs.waiting(*MINE)) == 1


def test_a_job_that_htcondor_has_not_asked_about_lately_is_not_sent_until_it_asks(jobs):
    """The ledger may be yesterday's, and the job on the project since."""
    job_id = jobs.accept(new_job("a")).id
    now = time.time()
    jobs.store.execute("UPDATE job SET last_polled = ?", (now - 3700.0,))
    assert jobs.waiting(*MINE) == []
    jobs.htcondor_polled({job_id: now})
    assert [job.id for job in jobs.waiting(*MINE)] == [job_id]


def test_what_postpones_a_batch_is_told_until_it_is_submitted(jobs):
    batch, _ = planned(jobs, "a")
    jobs.postpone(batch.id, 500.0, "the project is down")
    row = jobs.batch(batch.id)
    assert (row.not_before, row.trouble, row.state) == (500.0, "the project is down", "planned")
    jobs.submitted(batch.id, 7)
    row = jobs.batch(batch.id)
    assert (row.not_before, row.trouble) == (0.0, None)
