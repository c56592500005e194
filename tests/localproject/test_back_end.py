"""The back-end programs' passes, one at a time, on the database alone (``back-end.rst``)."""

import pytest

from boinc_gahp.localproject.backend.cleaning import (
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
    fields = {"id": 1, "user_id": 1, "create_time": 0, "name": "b", "name_key": "b", "app_id": 1}
    bench.insert("batch", state=state, **fields, **columns)


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
    bench.insert("job_file", id=1, name="f.txt", create_time=0, delete_time=delete_time)
    bench.insert("batch_file_assoc", batch_id=1, job_file_id=1)
    assert delete_job_files(bench.core, NOW) == deleted
    assert bench.core.download.exists("f.txt") == (not deleted)


def test_a_young_job_file_is_left_alone(bench):
    bench.insert("job_file", name="f.txt", create_time=NOW - 60, delete_time=0)
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
