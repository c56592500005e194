"""Batches: which change is made from which state, and what every other state refuses."""

import pytest

from boinc_gahp.errors import LedgerError
from tests.ledger.jobs import (
    LEASE,
    MINE,
    new_job,
    planned,
)


def test_a_batch_is_planned_of_the_jobs_that_still_wait(jobs):
    ids = [jobs.accept(new_job(name)).id for name in "abcd"]
    jobs.cancel(ids[1])
    other = jobs.accept(new_job("other", account="another")).id
    assert [job.job_id for job in jobs.waiting(*MINE)] == [ids[0], *ids[2:]]
    wanted = [ids[3], ids[1], ids[0], other, 99, ids[3]]
    batch = jobs.plan(*MINE, "bg-1", "uppercase", "t", wanted, LEASE)
    assert batch == jobs.batch(batch.id)
    assert (batch.name, batch.state, batch.project_batch_id) == ("bg-1", "planned", None)
    assert (batch.lease_until, batch.not_before, batch.trouble) == (LEASE, 0.0, None)
    named = [(job.id, job.job_name, job.state) for job in jobs.jobs_of(batch.id)]
    assert named == [(ids[3], "bg-1-1", "sending"), (ids[0], "bg-1-2", "sending")]
    assert [job.job_id for job in jobs.waiting(*MINE)] == [ids[2]]
    assert jobs.plan(*MINE, "bg-2", "uppercase", "t", [ids[0], ids[1]], LEASE) is None
    assert [batch.name for batch in jobs.batches(*MINE)] == ["bg-1"]


def test_a_batchs_name_is_used_once(jobs):
    planned(jobs, "a")
    with pytest.raises(LedgerError, match="UNIQUE"):
        planned(jobs, "b")
    assert len(jobs.waiting(*MINE)) == 1


def test_jobs_of_a_batch_come_in_the_order_of_their_numbers(jobs):
    batch, ids = planned(jobs, *map(str, range(12)))
    assert [job.id for job in jobs.jobs_of(batch.id)] == ids
    jobs.cancel(ids[2])
    assert [job.id for job in jobs.jobs_of(batch.id, "cancelled", "running")] == [ids[2]]
    assert len(jobs.jobs_of(batch.id, "sending")) == 11
    assert jobs.jobs_of(batch.id, "no such state") == []


def test_what_postpones_a_batch_is_told_until_it_is_submitted(jobs):
    batch, _ = planned(jobs, "a")
    jobs.postpone(batch.id, 500.0, "the project is down")
    row = jobs.batch(batch.id)
    assert (row.not_before, row.trouble, row.state) == (500.0, "the project is down", "planned")
    jobs.submitted(batch.id, 7)
    row = jobs.batch(batch.id)
    assert (row.not_before, row.trouble) == (0.0, None)


def test_the_parts_of_a_batch_have_only_its_jobs_that_are_still_to_be_sent(jobs):
    batch, ids = planned(jobs, "a", "b", "c", "d")
    jobs.cancel(ids[1])
    assert jobs.divide(batch.id, {"bg-1-1": ids[:2], "bg-1-2": [99]}, "t/f/1", "refused", LEASE)
    old, part = jobs.batches(*MINE)
    assert (old.state, part.state, part.trouble) == ("ended", "planned", "refused")
    assert [job.id for job in jobs.jobs_of(part.id)] == ids[:1]
    assert [jobs.job(job_id).state for job_id in ids[1:]] == ["cancelled", "waiting", "waiting"]
