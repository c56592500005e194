"""The back-end programs' passes, one at a time, on the database alone (``back-end.rst``)."""

import pytest

from boinc_gahp.localproject.backend.expiry import (
    delete_job_files,
    delete_retired_outputs,
)
from boinc_gahp.localproject.states import (
    FileDeleteState,
    ValidateState,
)
from tests.localproject.bench import NOW


def _finish(bench):
    bench.transition()
    bench.answer(bench.send())
    bench.settle()


def _batch(bench, state, **columns):
    with bench.core.db.write() as connection:
        connection.execute(
            "INSERT INTO batch (id, user_id, create_time, name, name_key, app_id, state) "
            "VALUES (1, 1, 0, 'b', 'b', 1, ?)",
            (state,),
        )
    if columns:
        bench.set("batch", "1", **columns)


@pytest.mark.parametrize(
    ("state", "delete_time", "deleted"),
    [
        pytest.param(0, NOW - 1, 0, id="batch empty"),
        pytest.param(1, NOW - 1, 0, id="batch in progress"),
        pytest.param(2, NOW - 1, 1, id="batch complete"),
        pytest.param(4, NOW - 1, 1, id="batch retired"),
        pytest.param(4, NOW + 1, 0, id="time not come"),
        pytest.param(4, 0.0, 1, id="no time"),
    ],
)
def test_a_job_file_goes_when_its_time_has_come_and_no_batch_needs_it(
    bench, state, delete_time, deleted
):
    _batch(bench, state)
    bench.core.download.add_bytes("f.txt", b"f")
    with bench.core.db.write() as connection:
        connection.execute("INSERT INTO job_file VALUES (1, 'f.txt', 0, ?)", (delete_time,))
        connection.execute("INSERT INTO batch_file_assoc VALUES (1, 1)")
    assert delete_job_files(bench.core, NOW) == deleted
    assert bench.core.download.exists("f.txt") == (not deleted)


def test_a_young_job_file_is_left_alone(bench):
    with bench.core.db.write() as connection:
        connection.execute("INSERT INTO job_file VALUES (1, 'f.txt', ?, 0)", (NOW - 60,))
    assert delete_job_files(bench.core, NOW) == 0


def test_outputs_of_a_retired_batch_stay_for_a_while(bench):
    bench.workunit()
    _finish(bench)
    name = f"w_0_r{bench.results('random')[0]}_0"
    _batch(bench, 4, logical_end_time=NOW)
    assert delete_retired_outputs(bench.core, NOW + 60) == 0
    assert bench.core.upload.exists(name)
    assert delete_retired_outputs(bench.core, NOW + 7200) == 1
    assert not bench.core.upload.exists(name)
    assert delete_retired_outputs(bench.core, NOW + 7200) == 0


def test_outputs_that_come_after_a_retired_batch_was_cleaned_go_as_well(bench):
    bench.made(target_nresults=2)
    first, late = bench.send(1), bench.send(2)
    bench.answer(first, 1)
    bench.settle()
    _batch(bench, 4, logical_end_time=NOW)
    assert delete_retired_outputs(bench.core, NOW + 7200) == 1
    bench.now = NOW + 8000
    bench.answer(late, 2)
    bench.settle()
    assert bench.results("validate_state") == [ValidateState.VALID, ValidateState.TOO_LATE]
    name = f"w_1_r{bench.results('random')[1]}_0"
    assert bench.core.upload.exists(name)
    assert delete_retired_outputs(bench.core, NOW + 8000) == 0
    assert delete_retired_outputs(bench.core, NOW + 16000) == 1
    assert not bench.core.upload.exists(name)


@pytest.mark.parametrize("table", ["workunit", "result"])
def test_what_cannot_be_deleted_is_left_and_marked(bench, table):
    bench.workunit()
    _finish(bench)
    bench.set(table, file_delete_state=FileDeleteState.READY)
    bench.set(table, **{"workunit": {"xml_doc": "<"}, "result": {"xml_doc_in": "<"}}[table])
    bench.workunit("other")
    bench.set("workunit", "name = 'other'", file_delete_state=FileDeleteState.READY)
    bench.settle()
    assert bench.column(table, "file_delete_state")[0] == FileDeleteState.ERROR
    assert bench.column("workunit", "file_delete_state")[1] == FileDeleteState.DONE
