"""The back-end programs under their supervisor: each goes on when another cannot."""

import logging

import pytest

from boinc_gahp.localproject.backend import programs
from boinc_gahp.localproject.backend.supervisor import Supervisor
from boinc_gahp.localproject.states import AssimilateState, ErrorMask

PROGRAMS = {
    "transitioner",
    "size_regulator",
    "validator",
    "assimilator",
    "file_deleter",
    "work_generator",
    "batch_expiry",
    "job_file_cleaner",
}


def table(bench):
    rows = bench.core.db.connection().execute("SELECT * FROM program")
    return {row["name"]: dict(row) for row in rows}


def errors(bench):
    return {name: row["error"] for name, row in table(bench).items() if row["error"]}


@pytest.fixture
def supervisor(bench):
    return Supervisor(bench.core)


def test_every_program_has_a_row_after_the_first_round(bench, supervisor):
    assert supervisor.run_once(bench.now) == 0
    rows = table(bench)
    assert set(rows) == PROGRAMS
    assert {row["handled"] for row in rows.values()} == {0}
    assert {row["last_time"] for row in rows.values()} == {bench.now}


def test_one_program_that_fails_does_not_stop_the_others(bench, supervisor, caplog):
    caplog.set_level(logging.WARNING)
    connection = bench.core.db.connection()
    connection.execute("ALTER TABLE job_file RENAME TO job_file_kept")
    bench.workunit(error_mask=ErrorMask.CANCELLED)
    for _ in range(5):
        supervisor.run_once(bench.now)
    assert bench.wu["assimilate_state"] == AssimilateState.DONE
    assert errors(bench) == {"job_file_cleaner": "OperationalError: no such table: job_file"}
    for _ in range(6):
        bench.now += 40
        supervisor.run_once(bench.now)
    failed = [
        record for record in caplog.records if "job_file_cleaner has failed" in record.getMessage()
    ]
    assert len(failed) == 1
    connection.execute("ALTER TABLE job_file_kept RENAME TO job_file")
    bench.now += 40
    supervisor.run_once(bench.now)
    assert errors(bench) == {}
    assert "job_file_cleaner works again" in caplog.text


def test_a_program_that_fails_is_tried_again_after_longer_and_longer_times(bench, supervisor):
    bench.core.db.connection().execute("ALTER TABLE job_file RENAME TO job_file_kept")
    tries = []
    for _ in range(100):
        supervisor.run_once(bench.now)
        tries.append(table(bench)["job_file_cleaner"]["last_time"])
        bench.now += 1
    changes = [second for second in range(1, 100) if tries[second] != tries[second - 1]]
    assert changes[:6] == [1, 3, 7, 15, 31, 61]


def test_an_error_of_a_workunit_is_shown_until_that_one_is_handled(bench, supervisor):
    bench.module("mine", "def handle(job, canonical, instances):\n    1 / 0\n")
    bench.set("app", "id = 1", assimilator="mine:handle")
    bench.workunit(error_mask=ErrorMask.CANCELLED)
    for _ in range(4):
        supervisor.run_once(bench.now)
        bench.now += 0.01
    assert "ZeroDivisionError" in errors(bench)["assimilator"]
    bench.module("mine", "def handle(job, canonical, instances):\n    pass\n")
    bench.now += 1
    supervisor.run_once(bench.now)
    assert errors(bench) == {}


def test_what_a_work_generator_fails_of_is_shown_until_it_works(bench, supervisor):
    bench.set("app", "id = 1", work_error="ValueError: empty", work_generator="x", work_low=0)
    bench.set("app", "id = 1", work_failures=1)
    supervisor.run_once(bench.now)
    assert errors(bench) == {"work_generator": "uppercase: ValueError: empty"}
    bench.set("app", "id = 1", work_error="", work_failures=0)
    bench.now += 5
    supervisor.run_once(bench.now)
    assert errors(bench) == {}


def test_a_slow_program_leaves_the_rest_to_its_next_pass(bench):
    for name in ("a", "b", "c"):
        bench.workunit(name)
    rows = bench.core.db.connection().execute("SELECT id, name, failures FROM workunit").fetchall()
    seen = []

    def handle(row):
        seen.append(row["name"])

    arguments = (bench.core, programs.VALIDATOR, rows, handle)
    assert programs.handle_each(*arguments, now=bench.now, seconds=0) == 1
    assert programs.handle_each(*arguments, now=bench.now, seconds=60) == 3
    assert seen == ["a", "a", "b", "c"]
