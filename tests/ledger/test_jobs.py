"""Jobs: accepted, asked about, told of, cancelled; and on the project until they end."""

import time
from dataclasses import replace

import pytest

from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.rows import ALIVE, STATES, Hold
from boinc_gahp.ledger.store import Store
from tests.ledger.jobs import (
    ACCOUNT,
    HOLD,
    MINE,
    URL,
    batch_state,
    everything,
    finish,
    in_state,
    new_job,
    planned,
    prune,
    states,
    submitted,
)

ENDED = sorted(set(STATES) - ALIVE)


# -- accepted, asked about, told of, cancelled


def test_a_job_is_accepted_as_it_is_described(jobs, elsewhere):
    before = time.time()
    row = jobs.accept(replace(new_job("d", description='{"a": 1}'), project_name="alpha"))
    assert before <= row.accepted == row.changed == row.last_polled <= time.time()
    assert JobLedger(elsewhere).job(row.id) == row
    assert (row.id, row.job_directory, row.attempt) == (1, "d", 1)
    assert (row.project_url, row.account, row.project_name) == (URL, ACCOUNT, "alpha")
    assert (row.app_name, row.group_key, row.size) == ("uppercase", "0" * 32, 600)
    assert row.description == '{"a": 1}'
    assert (row.state, row.batch_id, row.job_name) == ("waiting", None, None)
    assert [row.end_reported, row.abort_pending, row.writing] == [False] * 3
    assert row.is_alive


def test_the_latest_time_at_which_a_job_was_asked_about_counts(jobs):
    row = jobs.accept(new_job("d"))
    jobs.htcondor_polled({row.id: row.last_polled + 10, 12345: row.last_polled + 10})
    jobs.htcondor_polled({row.id: row.last_polled + 5})
    assert jobs.job(row.id).last_polled == row.last_polled + 10


def test_a_repeated_submit_counts_as_asking(jobs):
    row = jobs.accept(new_job("d"))
    assert jobs.accept(new_job("d")).last_polled > row.last_polled


@pytest.mark.parametrize("job_id", [0, -1, 2])
def test_a_job_that_there_is_not_is_unknown(jobs, job_id):
    jobs.accept(new_job("d"))
    assert jobs.job(job_id) is None
    assert jobs.cancel(job_id) is None
    jobs.end_reported([job_id])
    jobs.htcondor_polled({job_id: 1.0})


def test_ids_are_not_used_again(jobs):
    first = jobs.accept(new_job("d")).id
    jobs.cancel(first)
    assert prune(jobs, time.time() + 1) == 1
    assert jobs.accept(new_job("d")).id == first + 1


def test_the_token_lasts_and_is_another_ledgers_other(jobs, elsewhere, tmp_path):
    assert len(bytes.fromhex(jobs.token)) == 4
    assert JobLedger(elsewhere).token == jobs.token
    other = Store(tmp_path / "other.sqlite")
    assert JobLedger(other).token != jobs.token
    other.close()


def test_bytes_that_are_no_utf8_do_no_harm(jobs):
    row = jobs.accept(replace(new_job("caf\udce9"), app_name="\udcff"))
    assert jobs.accept(new_job("caf\udce9")).id == row.id
    assert jobs.accept(new_job("caf\udce8")).id != row.id
    jobs.hold([row.id], Hold("no file caf\udce9", 2301, 2))
    assert jobs.job(row.id).hold_reason == r"no file caf\udce9"


# -- jobs on the project


@pytest.mark.parametrize("said", ["queued", "running", "finished"])
@pytest.mark.parametrize("state", STATES)
def test_what_the_project_says_changes_only_jobs_that_are_queued_or_running(jobs, state, said):
    job_id = in_state(jobs, state)
    jobs.statuses(jobs.job(job_id).batch_id or 1, {"bg-1-1": said, "bg-1-9": said, "x": said})
    assert jobs.job(job_id).state == (said if state in {"queued", "running"} else state)


def test_a_poll_with_no_news_writes_nothing(jobs, elsewhere):
    batch, _ = submitted(jobs, "a", "b")
    jobs.statuses(batch.id, {"bg-1-1": "running"})
    before = elsewhere.data_version()
    jobs.statuses(batch.id, {"bg-1-1": "running", "bg-1-2": "queued"})
    jobs.project_trouble(*MINE, None)
    assert elsewhere.data_version() == before


def test_finished_jobs_are_to_be_fetched_oldest_first(jobs):
    _, ids = submitted(jobs, "a", "b", "c", "d")
    finish(jobs, ids[3], ids[0], ids[1])
    assert [job.id for job in jobs.to_fetch(*MINE, 10)] == [ids[0], ids[1], ids[3]]
    assert [job.id for job in jobs.to_fetch(*MINE, 2)] == ids[:2]
    assert jobs.to_fetch(URL, "another", 10) == []


@pytest.mark.parametrize("state", STATES)
def test_only_for_a_finished_job_may_be_written(jobs, state):
    job_id = in_state(jobs, state)
    assert jobs.writing(job_id, True) == (state == "finished")
    assert jobs.job(job_id).writing == (state == "finished")
    assert jobs.writing(job_id, False) == (state == "finished")
    assert not jobs.job(job_id).writing


def test_writing_ends_after_a_cancel_too(jobs):
    job_id = in_state(jobs, "finished")
    assert jobs.writing(job_id, True)
    jobs.cancel(job_id)
    assert jobs.job(job_id).writing
    assert not jobs.writing(job_id, False)
    assert not jobs.job(job_id).writing


def test_a_new_manager_knows_that_nobody_writes(jobs):
    job_id = in_state(jobs, "finished")
    jobs.writing(job_id, True)
    jobs.stop_writing(URL, "another")
    assert jobs.job(job_id).writing
    jobs.stop_writing(*MINE)
    assert not jobs.job(job_id).writing


def test_the_last_job_of_a_batch_waits_for_its_end(jobs):
    batch, ids = submitted(jobs, "a", "b", "c")
    finish(jobs, *ids)
    assert jobs.fetched(ids[1], 0, 1.0) == "done"
    jobs.cancel(ids[0])
    assert batch_state(jobs, batch) == "submitted"
    assert jobs.fetched(ids[2], 7, 2.0) == "fetched"
    assert batch_state(jobs, batch) == "ended"
    row = jobs.job(ids[2])
    assert (row.state, row.exit_code, row.cpu_time) == ("fetched", 7, 2.0)
    jobs.close_batch(batch.id, retired=False)
    assert states(jobs, ids) == ["cancelled", "done", "done"]
    assert batch_state(jobs, batch) == "ended"
    jobs.close_batch(batch.id, retired=True)
    assert batch_state(jobs, batch) == "retired"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("status", [{}, {"exit_code": 2, "cpu_time": 3.0}], ids=["hold", "fail"])
def test_only_jobs_that_are_alive_fail(jobs, store, state, status):
    job_id = in_state(jobs, state)
    before, row = everything(store), jobs.job(job_id)
    jobs.hold([job_id], HOLD, **status)
    if state in ENDED:
        assert everything(store) == before
        return
    after = jobs.job(job_id)
    assert after.state == "failed"
    assert (after.hold_reason, after.hold_code, after.hold_subcode) == ("the app crashed", 2304, 11)
    assert (after.batch_id, after.job_name) == (row.batch_id, row.job_name)
    assert {name: getattr(after, name) for name in status} == status


def test_batches_on_the_project_are_those_with_jobs_alive(jobs):
    first, ids = submitted(jobs, "a", "b", "c")
    planned(jobs, "d", name="bg-2")
    jobs.cancel(ids[0])
    finish(jobs, ids[1])
    assert jobs.on_project(*MINE) == {first.id: 2}
    jobs.fetched(ids[1], 0, 0.0)
    jobs.hold([ids[2]], HOLD)
    assert jobs.on_project(*MINE) == {}
