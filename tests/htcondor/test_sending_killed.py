"""A sending process is killed at any step; the next one goes on, and each job has one workunit."""

import pytest

from boinc_gahp.htcondor.status_ad import HoldCode
from tests.htcondor.desk import desk_of, for_sending, kill_at, refuse
from tests.htcondor.helpers import assert_held

pytestmark = pytest.mark.long

WORDS = "create_work failed: bad stdin argument 3"


@pytest.fixture
def site(site, monkeypatch):
    # What is patched holds for the second process alone: the first one never gets so far.
    return for_sending(site, monkeypatch, read=2)


@pytest.mark.parametrize(
    ("step", "carried_out"),
    [("create_batch", True), ("submit_batch", True), ("submit_batch", False)],
    ids=["create_batch", "submit_batch", "a submit_batch that arrives later"],
)
def test_after_a_kill_the_next_process_completes_the_batch(site, step, carried_out):
    with desk_of(site) as desk:
        ids = desk.accept(5, files=5)
    hang = kill_at(site, step, carried_out=carried_out)
    with desk_of(site) as desk:
        (batch,) = desk.batches()
        assert batch.state == ("sent" if step == "submit_batch" else "planned")
        desk.context.jobs.cancel(ids[4])
        more = desk.accept(1)
        desk.run()
        # What was under way reaches the project only now.
        hang.release()
        _check(desk, ids[:4] + more)
        assert desk.row(ids[0]).batch_id == batch.id
        # It was in the request if that was sent.
        there = len(ids) if step == "submit_batch" else len(ids) - 1
        assert len(site.workunits()) == there + 1


def _check(desk, ids):
    assert desk.states(ids) == ["queued"] * len(ids)
    names = [str(desk.row(job_id).job_name) for job_id in ids]
    alive = desk.alive_workunits()
    assert set(names) <= set(alive)
    assert len(alive) == len(set(alive))


def test_after_a_kill_in_the_search_for_a_culprit_the_next_process_finds_it(site):
    site.proxy.fail("submit_batch", refuse(WORDS, b"number3<"), times=None)
    with desk_of(site) as desk:
        ids = desk.accept(8, "number{}")
    kill_at(site, "abort_batch", carried_out=True).release()
    with desk_of(site) as desk:
        (batch,) = desk.batches("giving_up")
        assert set(desk.states(ids)) == {"sending"}
        desk.run()
        assert_held(desk.row(ids[3]), HoldCode.REFUSED, WORDS)
        desk.check_once(ids[:3] + ids[4:])
        assert desk.context.jobs.batch(batch.id) is not None
        assert len(site.workunits()) == 7
