"""Jobs: accepted, asked about, told of, cancelled; and on the project until they end."""

import sqlite3
import time
from contextlib import closing
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
    in_state,
    new_job,
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


def test_the_token_lasts_and_is_another_ledgers_other(jobs, elsewhere, tmp_path):
    assert len(bytes.fromhex(jobs.token)) == 4
    assert JobLedger(elsewhere).token == jobs.token
    other = Store(tmp_path / "other.sqlite")
    assert JobLedger(other).token != jobs.token
    other.close()


def test_a_ledger_that_was_restored_gives_no_id_again(jobs, store, tmp_path):
    jobs.accept(new_job("before"))
    with store.read() as connection, closing(sqlite3.connect(tmp_path / "copy")) as copy:
        connection.backup(copy)
    lost = [jobs.accept(new_job(f"lost{number}")) for number in range(3)]
    restored = Store(tmp_path / "copy")
    new = JobLedger(restored).accept(new_job("new"))
    restored.close()
    assert new.id > lost[-1].id


def test_bytes_that_are_no_utf8_do_no_harm(jobs):
    row = jobs.accept(replace(new_job("caf\udce9"), app_name="\udcff"))
    assert jobs.accept(new_job("caf\udce9")).id == row.id
    assert jobs.accept(new_job("caf\udce8")).id != row.id
    jobs.hold([row.id], Hold("no file caf\udce9", 2301, 2))
    assert jobs.job(row.id).hold_reason == r"no file caf\udce9"


# -- jobs on the project


def test_a_poll_with_no_news_writes_nothing(jobs, elsewhere):
    batch, _ = submitted(jobs, "a", "b")
    jobs.statuses(batch.id, {"bg-1-1": "running"})
    before = elsewhere.data_version()
    jobs.statuses(batch.id, {"bg-1-1": "running", "bg-1-2": "queued"})
    jobs.project_trouble(*MINE, None)
    assert elsewhere.data_version() == before


@pytest.mark.parametrize("state", STATES)
def test_only_for_a_finished_job_may_be_written(jobs, state):
    job_id = in_state(jobs, state)
    assert jobs.writing(job_id, True) == (state == "finished")
    assert jobs.job(job_id).writing == (state == "finished")
    jobs.cancel(job_id)
    assert jobs.job(job_id).writing == (state == "finished")
    assert not jobs.writing(job_id, False)
    assert not jobs.job(job_id).writing


def test_a_new_manager_knows_that_nobody_writes(jobs):
    job_id = in_state(jobs, "finished")
    assert jobs.writing(job_id, False)
    jobs.writing(job_id, True)
    jobs.stop_writing(URL, "another")
    assert jobs.job(job_id).writing
    jobs.stop_writing(*MINE)
    assert not jobs.job(job_id).writing


@pytest.mark.parametrize("status", [{}, {"exit_code": 2, "cpu_time": 3.0}], ids=["hold", "fail"])
def test_a_job_that_fails_has_its_reason_and_where_it_was(jobs, status):
    """Which jobs can fail: ``test_machine.py``."""
    job_id = in_state(jobs, "running")
    before = jobs.job(job_id)
    jobs.hold([job_id], replace(HOLD, **status))
    row = jobs.job(job_id)
    assert (row.hold_reason, row.hold_code, row.hold_subcode) == ("the app crashed", 2304, 11)
    assert (row.batch_id, row.job_name) == (before.batch_id, before.job_name)
    assert {name: getattr(row, name) for name in status} == status
