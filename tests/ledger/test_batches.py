"""Batches: which change is made from which state, and what every other state refuses."""

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.rows import BATCH_STATES
from tests.ledger.jobs import (
    HOLD,
    LEASE,
    MINE,
    batch_state,
    everything,
    in_request,
    new_job,
    planned,
    states,
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


def in_batch_state(jobs, state):
    """Return a batch of that state with jobs of all the states that it can have then."""
    batch, ids = planned(jobs, "a", "b", "c", "d", "e")
    if state != "planned":
        assert jobs.about_to_send(batch.id, 7, ids) == "go"
    jobs.cancel(ids[4])
    if state == "giving_up":
        jobs.begin_abort(batch.id, 50.0)
    if state in {"submitted", "ended", "retired"}:
        jobs.submitted(batch.id, 7)
        jobs.statuses(batch.id, {"bg-1-1": "finished", "bg-1-2": "running"})
    if state in {"ended", "retired"}:
        jobs.cancel(ids[2])
        jobs.hold([ids[3]], HOLD)
        jobs.hold([ids[1]], HOLD)
        assert jobs.fetched(ids[0], 0, 1.0) == "fetched"
    if state == "retired":
        jobs.close_batch(batch.id, retired=True)
    assert batch_state(jobs, batch) == state
    return batch.id, ids


#: Each change of a batch: the change, the states that allow it, and what then becomes of the batch
#: and of its jobs a, b, c, d and e.
CHANGES = {
    "about to send": (
        lambda jobs, batch: jobs.about_to_send(batch, 8, in_request(jobs, batch)),
        dict.fromkeys(["planned", "sent"], ("sent", "sssss")),
    ),
    "submitted": (
        lambda jobs, batch: jobs.submitted(batch, 8),
        dict.fromkeys(["planned", "sent"], ("submitted", "qqqqc")),
    ),
    "give up": (
        lambda jobs, batch: jobs.begin_abort(batch, 60.0),
        dict.fromkeys(["planned", "sent", "giving_up"], ("giving_up", "ssssc")),
    ),
    "drop": (
        lambda jobs, batch: jobs.drop_from_batch(batch),
        dict.fromkeys(["planned", "sent", "giving_up"], ("retired", "wwwwc")),
    ),
    "close": (
        lambda jobs, batch: jobs.close_batch(batch, retired=False),
        {"ended": ("ended", "dFcFc")},
    ),
    "retire": (
        lambda jobs, batch: jobs.close_batch(batch, retired=True),
        {"ended": ("retired", "dFcFc")},
    ),
}
LETTERS = {"s": "sending", "q": "queued", "w": "waiting", "d": "done", "c": "cancelled"}
LETTERS |= {"F": "failed"}


@pytest.mark.parametrize("state", BATCH_STATES)
@pytest.mark.parametrize("name", CHANGES)
def test_a_batch_changes_only_from_the_states_that_allow_it(jobs, store, state, name):
    do, allowed = CHANGES[name]
    batch_id, ids = in_batch_state(jobs, state)
    before = everything(store)
    said = do(jobs, batch_id)
    if state not in allowed:
        assert everything(store) == before
        assert said in {None, "over"}
        return
    after, letters = allowed[state]
    batch = jobs.batch(batch_id)
    assert batch.state == after
    expected = [LETTERS[letter] for letter in letters[:4]] + ["cancelled"]
    assert states(jobs, ids) == expected
    if name in {"about to send", "submitted"}:
        assert batch.project_batch_id == 8
        assert said in {None, "go"}
    if name == "drop":
        assert jobs.pending_aborts(*MINE) == []
        assert {job.batch_id for job in jobs.jobs_of(batch_id)} == {batch_id}
        assert [job.id for job in jobs.jobs_of(batch_id)] == [ids[4]]
        assert [job.job_id for job in jobs.waiting(*MINE)] == ids[:4]
        assert jobs.job(ids[0]).job_name is None


def test_what_postpones_a_batch_is_told_until_it_is_submitted(jobs):
    batch, _ = planned(jobs, "a")
    jobs.postpone(batch.id, 500.0, "the project is down")
    row = jobs.batch(batch.id)
    assert (row.not_before, row.trouble, row.state) == (500.0, "the project is down", "planned")
    jobs.submitted(batch.id, 7)
    row = jobs.batch(batch.id)
    assert (row.not_before, row.trouble) == (0.0, None)


ALL_END = [
    ("planned", "ended", "no abort"),
    ("sent", "giving_up", "abort"),
    ("submitted", "ended", "abort"),
    ("giving_up", "giving_up", "no abort"),
]


@pytest.mark.parametrize(("state", "after", "pending"), ALL_END, ids=[row[0] for row in ALL_END])
def test_a_batch_whose_last_job_is_cancelled_ends(jobs, state, after, pending):
    batch, ids = planned(jobs, "a", "b")
    if state != "planned":
        jobs.about_to_send(batch.id, 7, ids)
    if state == "submitted":
        jobs.submitted(batch.id, 7)
    if state == "giving_up":
        jobs.begin_abort(batch.id, 50.0)
    jobs.cancel(ids[0])
    assert batch_state(jobs, batch) == state
    jobs.cancel(ids[1])
    assert batch_state(jobs, batch) == after
    assert len(jobs.pending_aborts(*MINE)) == (2 if pending == "abort" else 0)
    # What was decided cannot be sent any more.
    assert jobs.about_to_send(batch.id, 7, ids) == "over"
    jobs.submitted(batch.id, 7)
    assert batch_state(jobs, batch) == after
