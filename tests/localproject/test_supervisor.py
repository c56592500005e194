"""The back-end programs under their supervisor: each goes on when another cannot."""

import logging

import pytest

from boinc_gahp.localproject.backend import programs
from boinc_gahp.localproject.backend.supervisor import Supervisor
from boinc_gahp.localproject.states import AssimilateState, ErrorMask


def errors(bench):
    """Return each program's last error."""
    rows = bench.rows("SELECT * FROM program WHERE error != ''")
    return {row["name"]: (row["error"], row["error_time"]) for row in rows}


@pytest.fixture
def supervisor(bench):
    return Supervisor(bench.core)


def test_one_program_that_fails_does_not_stop_the_others(bench, supervisor, caplog):
    caplog.set_level(logging.WARNING)
    connection = bench.core.db.connection()
    connection.execute("ALTER TABLE job_file RENAME TO job_file_kept")
    bench.workunit(error_mask=ErrorMask.CANCELLED)
    begin = bench.now
    for bench.now in (begin, begin + 1, begin + 9, begin + 10):
        supervisor.run_once(bench.now)
    assert bench.wu["assimilate_state"] == AssimilateState.DONE
    said = "OperationalError: no such table: job_file"
    assert errors(bench) == {"job_file_cleaner": (said, begin + 10)}
    assert caplog.text.count("job_file_cleaner has failed") == 1
    connection.execute("ALTER TABLE job_file_kept RENAME TO job_file")
    bench.now += 10
    supervisor.run_once(bench.now)
    assert errors(bench) == {"job_file_cleaner": (said, begin + 10)}


def test_what_a_program_has_handled_is_counted(bench, supervisor):
    for name in ("a", "b"):
        bench.workunit(name, error_mask=ErrorMask.CANCELLED)
        supervisor.run_once(bench.now)
    handled = dict(bench.rows("SELECT name, handled FROM program"))
    assert handled["assimilator"] == 2


def test_a_slow_program_leaves_the_rest_to_its_next_pass(bench):
    for name in ("a", "b", "c"):
        bench.workunit(name)
    rows = bench.core.db.connection().execute("SELECT id, name FROM workunit").fetchall()
    seen = []

    def handle(row):
        seen.append(row["name"])

    arguments = (bench.core, programs.VALIDATOR, rows, handle)
    assert programs.handle_each(*arguments, now=bench.now, seconds=0) == 1
    assert programs.handle_each(*arguments, now=bench.now, seconds=60) == 3
    assert seen == ["a", "a", "b", "c"]
