"""The back-end programs' passes where no history shows them (``back-end.rst``): on a database."""

import logging
import time
from functools import partial

import pytest

from boinc_gahp.localproject.backend import batches, programs
from boinc_gahp.localproject.backend.cleaning import delete_job_files, delete_retired_outputs
from boinc_gahp.localproject.backend.supervisor import Supervisor
from boinc_gahp.localproject.states import AssimilateState, ErrorMask, FileDeleteState
from tests.localproject.bench import IN_PROGRESS, NO_REPLY, NOW
from tests.localproject.on_host import out

# The transitioner.


def test_a_new_result_has_what_the_scheduler_needs_and_output_names_that_cannot_be_guessed(bench):
    bench.made(priority=4, app_version_num=7, batch=9, target_nresults=2)
    wanted = "priority, app_version_num, batch, appid"
    assert [*bench.rows(f"SELECT {wanted} FROM result")[0]] == [4, 7, 9, 1]
    first, second = bench.results("random")
    assert first != second
    assert f"<name>w_0_r{first}_0</name>" in bench.results("xml_doc_in")[0]


def test_the_output_template_is_read_when_a_result_is_made(bench):
    bench.made(target_nresults=1)
    bench.outputs(out("renamed"))
    bench.set("workunit", target_nresults=2, transition_time=NOW)
    bench.transition()
    first, second = bench.results("xml_doc_in")
    assert "<open_name>out</open_name>" in first
    assert "<open_name>renamed</open_name>" in second


def test_without_its_output_template_a_workunit_waits_and_all_else_is_noted(bench):
    template = bench.core.templates / "uppercase_out"
    text = template.read_text()
    template.unlink()
    bench.workunit()
    bench.result(IN_PROGRESS, report_deadline=NOW - 1)
    bench.transition()
    assert bench.results("outcome") == [NO_REPLY]
    assert "uppercase_out" in bench.trouble("transitioner")
    template.write_text(text)
    assert bench.transition() == 0
    bench.now += 10
    bench.transition()
    assert bench.results("name") == ["w_0", "w_1"]


# Files.


@pytest.mark.parametrize(
    ("state", "age", "delete_time", "deleted"),
    [
        pytest.param(0, NOW, NOW - 1, 0, id="batch empty"),
        pytest.param(1, NOW, NOW - 1, 0, id="batch in progress"),
        pytest.param(2, NOW, NOW - 1, 1, id="batch complete"),
        pytest.param(4, NOW, NOW + 1, 0, id="time not come"),
        pytest.param(4, NOW, 0.0, 1, id="no time"),
        pytest.param(4, 60, 0.0, 0, id="young"),
    ],
)
def test_a_job_file_goes_when_its_time_has_come_and_no_batch_needs_it(
    bench, state, age, delete_time, deleted
):
    bench.batch(state)
    bench.core.download.add_bytes("f.txt", b"f")
    file = {"name": "f.txt", "create_time": NOW - age, "delete_time": delete_time}
    bench.insert("batch_file_assoc", batch_id=1, job_file_id=bench.insert("job_file", **file))
    assert delete_job_files(bench.core, NOW) == deleted
    assert bench.core.download.exists("f.txt") == (not deleted)


def test_outputs_of_a_retired_batch_stay_for_a_while(bench):
    bench.finished()
    name = f"w_0_r{bench.results('random')[0]}_0"
    bench.batch(4, logical_end_time=NOW)
    assert delete_retired_outputs(bench.core, NOW + 60) == 0
    assert bench.core.upload.exists(name)
    assert delete_retired_outputs(bench.core, NOW + 7200) == 1
    assert not bench.core.upload.exists(name)
    assert delete_retired_outputs(bench.core, NOW + 7200) == 0


@pytest.mark.parametrize("table", ["workunit", "result"])
def test_what_cannot_be_deleted_is_left_and_marked(bench, table):
    bench.finished()
    bench.set(table, file_delete_state=FileDeleteState.READY)
    bench.set(table, **{"workunit": {"xml_doc": "<"}, "result": {"xml_doc_in": "<"}}[table])
    bench.workunit("other")
    bench.set("workunit", "name = 'other'", file_delete_state=FileDeleteState.READY)
    bench.settle()
    assert bench.column(table, "file_delete_state")[0] == FileDeleteState.ERROR
    assert bench.column("workunit", "file_delete_state")[1] == FileDeleteState.DONE


# What query_batch2 relies on.


def test_each_change_is_dated_when_it_is_made_not_when_its_pass_began(bench):
    def dated(change):
        bench.set("workunit", mod_time=0)
        begin = time.time()
        done = change()
        assert begin <= bench.wu["mod_time"] <= time.time(), change
        return done

    def cancel():
        with bench.core.db.write() as connection:
            batches.cancel_jobs(connection, "id = ?", (1,))

    bench.workunit()
    dated(bench.transition)
    task = dated(bench.send)
    dated(lambda: bench.answer(task))
    bench.transition()
    dated(bench.validate)
    dated(bench.assimilate)
    dated(cancel)
    bench.set("workunit", app_version_num=999, target_nresults=2, canonical_resultid=0)
    bench.set("workunit", error_mask=0, transition_time=0)
    bench.transition()
    dated(lambda: bench.send(2))


# Under their supervisor: each goes on when another cannot.


def test_one_program_that_fails_does_not_stop_the_others(bench, caplog):
    def errors():
        rows = bench.rows("SELECT * FROM program WHERE error != ''")
        return {row["name"]: (row["error"], row["error_time"]) for row in rows}

    caplog.set_level(logging.WARNING)
    supervisor = Supervisor(bench.core)
    connection = bench.core.db.connection()
    connection.execute("ALTER TABLE job_file RENAME TO job_file_kept")
    bench.workunit(error_mask=ErrorMask.CANCELLED)
    begin = bench.now
    for bench.now in (begin, begin + 1, begin + 9, begin + 10):
        supervisor.run_once(bench.now)
    assert bench.wu["assimilate_state"] == AssimilateState.DONE
    said = "OperationalError: no such table: job_file"
    assert errors() == {"job_file_cleaner": (said, begin + 10)}
    assert caplog.text.count("job_file_cleaner has failed") == 1
    connection.execute("ALTER TABLE job_file_kept RENAME TO job_file")
    bench.workunit("another", error_mask=ErrorMask.CANCELLED)
    bench.now += 10
    supervisor.run_once(bench.now)
    assert errors() == {"job_file_cleaner": (said, begin + 10)}
    assert dict(bench.rows("SELECT name, handled FROM program"))["assimilator"] == 2


def test_a_slow_program_leaves_the_rest_to_its_next_pass(bench, monkeypatch):
    for name in ("a", "b", "c"):
        bench.workunit(name)
    rows = bench.rows("SELECT id, name FROM workunit")
    seen = []
    for seconds, count in ((0, 1), (60, 3)):
        monkeypatch.setattr(programs, "_PASS_SECONDS", seconds)
        handle = partial(programs.handle_each, bench.core, programs.VALIDATOR, rows)
        assert handle(lambda row: seen.append(row["name"]), bench.now) == count
    assert seen == ["a", "a", "b", "c"]
