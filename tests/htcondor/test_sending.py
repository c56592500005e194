"""Each job that HTCondor hands over comes to have one workunit, whatever is in the way."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.htcondor import _sending
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.states import BatchState
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.desk import desk_of, kill_at, lose_track, refuse
from tests.htcondor.helpers import assert_held, expire_times

pytestmark = pytest.mark.usefixtures("sending")


# -- batches


def test_jobs_that_come_together_are_one_batch_with_its_lease_and_names(site, desk):
    ids = desk.accept(20, files=3)
    desk.run()
    desk.check_once(ids)
    (name,) = site.batches()
    assert len(name) == 35
    assert name.startswith("bg-")
    assert desk.row(ids[4]).job_name == f"{name}-5"
    assert expire_times(site) == pytest.approx([time.time() + site.htcondor.lease], abs=60)


# -- faults on the way

FAULTS = {
    "lost reply": faultproxy.lose_reply(),
    "500, done": faultproxy.status(500, carried_out=True),
    "HTML page, done": faultproxy.html(carried_out=True),
    "cut reply": faultproxy.cut(),
}
STEPS = ["get_templates", "query_batch", "create_batch", "query_files", "upload_files"]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_at_every_step_of_a_submit_ends_with_each_job_once(site, desk, fault):
    for step in [*STEPS, "submit_batch"]:
        site.proxy.fail(step, fault)
    ids = desk.accept(4, files=4)
    desk.run()
    desk.check_once(ids)
    assert len(site.workunits()) == 4
    assert set(site.batch_states()) <= {BatchState.IN_PROGRESS, BatchState.INIT}


def test_a_night_s_jobs_wait_and_go_in_one_batch(site):
    site.reset(poll_shortest=30.0, poll_longest=30.0)
    site.local.core.web_stopped = True
    with desk_of(site) as desk:
        first = desk.accept(1)
        desk.turn()
        assert "-183" in str(desk.batches("planned")[0].trouble) or desk.context.jobs.troubles()
        assert desk.context.jobs.troubles()[desk.context.owner]
        ids = []
        for _ in range(9):
            ids += desk.accept(1)
            desk.turn()
        assert set(desk.states(ids)) == {"waiting"}
        site.local.core.web_stopped = False
        desk.context.pauses.succeeded()
        desk.work(desk.batches("planned")[0])
        desk.run()
        desk.check_once(first + ids)
        assert len(site.batches()) == 2
        assert not desk.context.jobs.troubles()


# -- what is held


def test_a_bad_authenticator_holds_the_jobs_and_says_what_to_mend(site):
    site.authenticator = "0123456789abcdef"
    with desk_of(site) as desk:
        ids = desk.accept(2)
        desk.run()
        for row in map(desk.row, ids):
            assert_held(row, HoldCode.ACCOUNT, "account key is wrong")
            assert "0123456789abcdef" not in row.hold_reason
        assert desk.batches("retired")


def input_of(row):
    [(_, file)] = JobDescription.from_json(row.description).inputs
    return Path(file.path)


@pytest.mark.parametrize(
    ("harm", "subcode", "words"),
    [
        pytest.param(lambda path: path.unlink(), 2, "No such file", id="gone"),
        pytest.param(lambda path: path.write_bytes(b"other"), 0, "changed after", id="changed"),
    ],
)
def test_a_job_whose_input_vanished_or_changed_is_held_with_its_name_and_others_go_on(
    site, desk, harm, subcode, words
):
    ids = desk.accept(4, files=4)
    path = input_of(desk.row(ids[2]))
    harm(path)
    desk.run()
    assert_held(desk.row(ids[2]), HoldCode.INPUT, str(path), words, subcode=subcode)
    desk.check_once([ids[0], ids[1], ids[3]])
    assert len(site.batches()) == 1
    # Nothing of it is in the batch: it may be submitted anew.
    assert desk.row(ids[2]).batch_id is None


def test_jobs_that_the_checks_refuse_are_held_before_anything_is_sent(site, desk):
    site.proxy.fail("create_batch", faultproxy.status(500))
    good = desk.accept(3)
    quoted = desk.accept(1, 'a"b')
    spaced = desk.accept(1, "a b")
    more = desk.accept(3)
    desk.run()
    desk.check_once(good + more)
    for (job_id,), words in ((quoted, 'contains a "'), (spaced, "white space")):
        assert_held(desk.row(job_id), HoldCode.REFUSED, words)
    assert len(site.workunits()) == 6


# -- cancelled jobs


def test_jobs_that_are_cancelled_before_they_are_sent_are_left_out(site, desk):
    ids = desk.accept(3)
    desk.sender.plan(time.time())
    desk.context.jobs.cancel(ids[1])
    desk.run()
    desk.check_once([ids[0], ids[2]])
    assert not desk.context.jobs.pending_aborts(*desk.context.owner)


def test_jobs_that_are_cancelled_when_they_may_be_sent_stay_in_the_request(site, desk):
    lose_track(site, faultproxy.lose_request())
    ids = desk.accept(4)
    desk.sender.plan(time.time())
    desk.context.jobs.cancel(ids[0])
    desk.turn()
    assert [batch.state for batch in desk.batches("sent")] == ["sent"]
    desk.context.jobs.cancel(ids[2])
    site.proxy.heal()
    desk.run()
    assert desk.states([ids[1], ids[3]]) == ["queued", "queued"]
    assert len(site.workunits()) == 3
    (pending,) = desk.context.jobs.pending_aborts(*desk.context.owner)
    assert pending.id == ids[2]


def test_a_batch_all_of_whose_jobs_are_cancelled_when_it_may_be_sent_is_aborted(site, desk):
    lose_track(site, faultproxy.lose_reply())
    ids = desk.accept(2)
    desk.turn()
    for job_id in ids:
        desk.context.jobs.cancel(job_id)
    assert [batch.state for batch in desk.batches("giving_up")] == ["giving_up"]
    site.proxy.heal()
    desk.run()
    assert desk.alive_workunits() == []
    assert not desk.context.jobs.pending_aborts(*desk.context.owner)


def test_a_file_that_vanishes_when_its_job_may_be_sent_costs_a_batch_and_no_second_workunit(
    site, desk
):
    lose_track(site, faultproxy.lose_request())
    ids = desk.accept(3, files=3)
    desk.turn()
    (batch,) = desk.batches("sent")
    input_of(desk.row(ids[1])).unlink()
    site.proxy.heal()
    desk.run()
    assert_held(desk.row(ids[1]), HoldCode.INPUT, subcode=2)
    desk.check_once([ids[0], ids[2]])
    assert desk.row(ids[0]).batch_id != batch.id
    assert site.batch_states() == [BatchState.RETIRED, BatchState.IN_PROGRESS]


def test_jobs_that_may_be_on_the_project_are_not_held_for_an_account_that_does_not_work(site, desk):
    lose_track(site, faultproxy.lose_reply())
    ids = desk.accept(2)
    desk.turn()
    site.proxy.heal()

    rename = "UPDATE user SET authenticator = ? WHERE authenticator = ?"
    site.change(rename, "another", site.authenticator)

    def says_so():
        desk.turn()
        return any("authenticator" in text for text, _ in desk.context.jobs.troubles().values())

    wait_for(says_so, "the trouble with the account")
    assert desk.states(ids) == ["sending", "sending"]
    site.change(rename, site.authenticator, "another")
    desk.run()
    desk.check_once(ids)
    assert len(site.workunits()) == 2


# -- what people do on the project, and mistakes that last


def set_state(site, name, state):
    site.change("UPDATE batch SET state = ? WHERE name = ?", state, name)


def test_an_empty_batch_that_somebody_aborts_is_replaced(site, desk):
    site.proxy.fail("query_files", faultproxy.status(404), times=None)
    ids = desk.accept(2)
    desk.turn()
    (name,) = site.batches()
    set_state(site, name, BatchState.ABORTED)
    site.proxy.heal()
    desk.run()
    desk.check_once(ids)
    assert site.batch_states() == [BatchState.ABORTED, BatchState.IN_PROGRESS]


def test_a_batch_that_somebody_aborts_once_it_has_its_jobs_is_not_made_again(site, desk):
    lose_track(site, faultproxy.lose_reply())
    ids = desk.accept(2)
    desk.turn()
    (name,) = site.batches()
    set_state(site, name, BatchState.ABORTED)
    site.proxy.heal()
    desk.run()
    # What has become of its jobs is found out by who follows them.
    assert desk.states(ids) == ["queued", "queued"]
    assert site.batches() == [name]
    assert len(site.workunits()) == 2


def test_jobs_for_an_address_without_a_project_are_held_once_that_has_lasted(
    site, desk, monkeypatch
):
    site.proxy.fail("get_templates", faultproxy.status(404), times=None)
    ids = desk.accept(2)
    desk.turn()
    assert desk.states(ids) == ["sending", "sending"]
    monkeypatch.setattr("boinc_gahp.htcondor._sending_action.REFUSAL_FINAL", 0.0)
    desk.run()
    assert_held(desk.row(ids[0]), HoldCode.REFUSED, "check the project's URL")


@pytest.mark.parametrize("fault", [RuntimeError("unforeseen"), LedgerError("disk full")], ids=repr)
def test_a_fault_in_the_middle_of_sending_holds_nothing_and_each_job_is_sent_once(
    desk, monkeypatch, fault
):
    ids = desk.accept(3)
    met = []

    def fail(*_):
        met.append(fault)
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(_sending, "request_of", fail)
        desk.turn()
        assert (len(met), set(desk.states(ids))) == (1, {"sending"})
    desk.run()
    desk.check_once(ids)


# -- kills: what is patched holds for the second process alone; the first one never gets so far


@pytest.mark.long
def test_after_a_kill_in_the_search_for_a_culprit_the_next_process_finds_it(site):
    site.timeouts = replace(site.timeouts, read=2)
    words = "create_work failed: bad stdin argument 3"
    site.proxy.fail("submit_batch", refuse(words, b"number3<"), times=None)
    with desk_of(site) as desk:
        ids = desk.accept(8, "number{}")
    kill_at(site, "abort_batch", carried_out=True).release()
    with desk_of(site) as desk:
        (batch,) = desk.batches("giving_up")
        assert set(desk.states(ids)) == {"sending"}
        desk.run()
        assert_held(desk.row(ids[3]), HoldCode.REFUSED, words)
        desk.check_once(ids[:3] + ids[4:])
        assert desk.context.jobs.batch(batch.id) is not None
        assert len(site.workunits()) == 7
