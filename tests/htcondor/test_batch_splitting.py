"""A project that refuses a batch without naming a job: the culprit is found, the others go on."""

import time
from dataclasses import replace

import pytest

from boinc_gahp.htcondor import _rollback
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.states import BatchState
from boinc_gahp.submit import abort
from boinc_gahp.submit.control import retire_batch
from tests import faultproxy
from tests.htcondor.desk import desk_of, only_for, refuse
from tests.htcondor.helpers import assert_held

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("sending")]

#: One job's argument, and what the project has against it.
BAD, WORDS = b"number17<", "create_work failed: bad stdin argument 17"


def families(desk):
    """Return what the batches that are not over are parts of."""
    return {batch.group_key.rpartition("/")[0] for batch in desk.batches("planned", "sent")}


def test_of_64_jobs_the_one_that_the_project_refuses_is_held_and_63_run(site, desk):
    site.proxy.fail("submit_batch", refuse(WORDS, BAD), times=None)
    ids = desk.accept(64, "number{}")
    desk.run()
    assert_held(desk.row(ids[17]), HoldCode.REFUSED, WORDS, "alone")
    desk.check_once(ids[:17] + ids[18:])
    # 64, and two a level from there on.
    assert site.proxy.count("submit_batch") == 13
    assert len(site.workunits()) == 63


def test_two_culprits_are_found_and_new_jobs_do_not_get_between(site, desk):
    site.proxy.fail("submit_batch", refuse(WORDS, BAD), times=None)
    ids = desk.accept(9, "number{}")
    culprits = desk.accept(2, "number17")
    desk.turn()
    assert len(families(desk)) == 1
    more = desk.accept(5)
    desk.run()
    for job_id in culprits:
        assert_held(desk.row(job_id), HoldCode.REFUSED, WORDS)
    desk.check_once(ids + more)
    assert len({desk.row(job_id).batch_id for job_id in more}) == 1
    assert {desk.row(job_id).batch_id for job_id in more}.isdisjoint(
        desk.row(job_id).batch_id for job_id in ids
    )


def test_a_batch_that_is_half_made_when_it_is_refused_is_aborted_before_its_jobs_are_sent_again(
    site, desk
):
    site.proxy.fail("submit_batch", faultproxy.lose_reply())
    site.proxy.fail("query_batch", faultproxy.status(404), skip=2)
    ids = desk.accept(4, "number{}")
    desk.turn()
    (batch,) = desk.batches("sent")
    # The real server can leave a batch like that: some of its jobs exist, it is INIT.
    site.change("UPDATE batch SET state = 0 WHERE id = ?", batch.project_batch_id)
    for number in (2, 4):
        take_out(site, f"{batch.name}-{number}")
    site.proxy.fail("submit_batch", refuse(WORDS))
    site.proxy.fail("abort_batch", faultproxy.status(503), times=2)
    desk.run()
    desk.check_once(ids)
    assert len(site.workunits()) == 6
    assert len(desk.alive_workunits()) == 4


def take_out(site, name):
    """Remove a workunit, as if it had not been made yet."""
    of = "(SELECT id FROM workunit WHERE name = ?)"
    site.change(f"DELETE FROM result WHERE workunitid IN {of}", name)
    site.change("DELETE FROM workunit WHERE name = ?", name)


def test_a_batch_that_somebody_retired_is_aborted_and_retired_again_if_a_submit_may_be_running(
    site, desk
):
    ids = desk.accept(2)
    desk.run()
    (batch,) = desk.batches("submitted")
    retire_batch(desk.context.project, batch.name)
    # As if the answer had not come.
    store = desk.context.jobs.store
    store.execute("UPDATE batch SET state = 'giving_up', not_before = 1", ())
    store.execute("UPDATE job SET state = 'sending'", ())
    desk.run()
    assert site.proxy.count("abort_batch") == 1
    assert site.batch_states()[0] == BatchState.RETIRED
    assert len(site.workunits()) == 4
    desk.check_once(ids)


def test_an_abort_waits_no_longer_because_the_clock_was_set_back_and_long_enough(desk):
    ids = desk.accept(2)
    desk.sender.plan(time.time() + 1)
    (batch,) = desk.batches("planned")
    assert desk.context.jobs.about_to_send(batch.id, 12345, ids) == "go"
    desk.context.jobs.begin_abort(batch.id, time.time() + 86400)
    (batch,) = desk.batches("giving_up")
    desk.work(batch)
    (batch,) = desk.batches("giving_up")
    assert time.time() < batch.not_before <= time.time() + abort.ABORT_AGAIN
    desk.run()
    desk.check_once(ids)


def test_if_every_part_is_refused_the_rest_is_held_without_being_tried(site, desk, monkeypatch):
    monkeypatch.setattr(_rollback, "_DEPTH", 2)
    monkeypatch.setattr(_rollback, "_DISJOINT", 4)
    site.proxy.fail("submit_batch", refuse(WORDS), times=None)
    ids = desk.accept(20, "number{}")
    desk.run()
    for job_id in ids:
        assert_held(desk.row(job_id), HoldCode.REFUSED, WORDS)
    assert "not tried by itself" in desk.row(ids[5]).hold_reason
    assert site.proxy.count("submit_batch") == 7
    assert desk.alive_workunits() == []
    assert set(site.batch_states()) == {BatchState.RETIRED}


def test_a_php_that_dies_of_a_job_each_time_is_asked_about_the_halves(site, desk, monkeypatch):
    monkeypatch.setattr("boinc_gahp.submit.engine._ROUNDS", 1)
    dying = faultproxy.status(500, text=b'<?xml version="1.0"?>\n<submit_batch>\n')
    site.proxy.fail("submit_batch", only_for(dying, BAD), times=None)
    ids = desk.accept(1, "number5") + desk.accept(1, "number17")
    desk.turn()
    # It may have been chance.
    assert [batch.state for batch in desk.batches()] == ["sent"]
    desk.run()
    assert_held(desk.row(ids[1]), HoldCode.REFUSED, "PHP died")
    desk.check_once(ids[:1])
    # Three times both, then each alone.
    assert site.proxy.count("submit_batch") == 5


def test_a_limit_on_jobs_is_waited_for_and_a_batch_beyond_it_is_made_smaller(site, desk):
    limit(site, 6)
    ids = desk.accept(10)
    for _ in range(6):
        desk.turn()
    assert sorted(desk.states(ids)) == ["queued"] * 5 + ["sending"] * 5
    assert "limit on jobs in progress" in str(desk.batches("planned", "sent")[0].trouble)
    limit(site, 0)
    desk.run()
    desk.check_once(ids)


def test_a_limit_that_another_node_has_filled_is_waited_for_in_one_batch(site, tmp_path):
    other = replace(site, directory=tmp_path / "other")
    other.directory.mkdir()
    with desk_of(other) as elsewhere:
        elsewhere.accept(4)
        elsewhere.run()
    limit(site, 6)
    with desk_of(site) as desk:
        ids = desk.accept(5)
        for _ in range(6):
            desk.turn()
        assert len(desk.batches()) == 1
        assert "limit on jobs in progress" in str(desk.batches()[0].trouble)
        limit(site, 0)
        desk.run()
        assert set(desk.states(ids)) == {"queued"}
        assert len(desk.batches()) == 1


def limit(site, jobs):
    """Let the account have so many jobs in progress; 0: any number."""
    statement = (
        "UPDATE user_submit SET max_jobs_in_progress = ? WHERE user_id = "
        "(SELECT id FROM user WHERE authenticator = ?)"
    )
    site.change(statement, jobs, site.authenticator)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faultproxy.status(413), id="413"),
        pytest.param(refuse("can't parse request message: "), id="post_max_size"),
    ],
)
def test_a_request_that_is_too_large_is_sent_in_smaller_ones(site, desk, fault):
    def limited(exchange):
        if exchange.length > 6000:
            return bool(fault(exchange))
        exchange.send(exchange.forward())
        return True

    site.proxy.fail("submit_batch", limited, times=None)
    ids = desk.accept(40)
    desk.run()
    desk.check_once(ids)
    assert len(site.workunits()) == 40
