"""The rules of ``back-end.rst``, "Transitioner", and of BOINC's oldest pseudo-code, one by one.

M, N, A, B and C are those of the documents: min_quorum, target_nresults, max_error_results,
max_total_results and max_success_results.
"""

import pytest

from boinc_gahp.localproject.states import (
    AssimilateState,
    ErrorMask,
    FileDeleteState,
    Outcome,
    ValidateState,
)
from tests.localproject.bench import (
    ERROR,
    IN_PROGRESS,
    INCONCLUSIVE,
    INIT,
    INVALID,
    NO_REPLY,
    NOW,
    OVER,
    SUCCESS,
    VALID,
)
from tests.localproject.on_host import out

# When a result is sent, comes back, or falls off.


# Rule 1: results past their deadline.


# Rules 2 and 3: whether the validator is to look.


def test_a_success_after_the_canonical_outputs_are_deleted_is_too_late(bench):
    bench.workunit()
    bench.canonical(file_delete_state=FileDeleteState.DONE)
    bench.result(OVER, SUCCESS)
    bench.transition()
    assert bench.results("validate_state") == [VALID, ValidateState.TOO_LATE]
    assert bench.wu["need_validate"] == 0


# Rule 4: error bits.


def test_a_canonical_result_whose_row_is_gone_is_an_error(bench):
    bench.workunit()
    bench.canonical()
    with bench.core.db.write() as connection:
        connection.execute("DELETE FROM result")
    bench.settle()
    assert bench.wu["error_mask"] == ErrorMask.NO_CANONICAL_RESULT
    assert bench.wu["assimilate_state"] == AssimilateState.DONE
    assert bench.results("id") == []


def test_error_bits_add_up(bench):
    bench.workunit(max_error_results=0, max_total_results=1, error_mask=ErrorMask.CANCELLED)
    bench.result(OVER, ERROR)
    bench.result(OVER, Outcome.COULDNT_SEND)
    bench.transition()
    assert bench.wu["error_mask"] == (
        ErrorMask.CANCELLED
        | ErrorMask.COULDNT_SEND_RESULT
        | ErrorMask.TOO_MANY_ERROR_RESULTS
        | ErrorMask.TOO_MANY_TOTAL_RESULTS
    )


# Rule 5: new results, or none any more.


def test_the_number_in_a_name_is_one_more_than_the_largest_so_far(bench):
    bench.workunit()
    bench.result(OVER, NO_REPLY, name="w_7")
    bench.transition()
    assert bench.results("name") == ["w_7", "w_8"]


def test_output_files_have_names_that_cannot_be_guessed(bench):
    bench.workunit()
    bench.made("v")
    first, second = bench.results("random")
    assert first != second
    assert f"<name>w_0_r{first}_0</name>" in bench.results("xml_doc_in")[0]


def test_a_new_result_has_what_the_scheduler_needs_to_know(bench):
    bench.made(priority=4, size_class=2, app_version_num=7, batch=9)
    wanted = "priority, size_class, app_version_num, batch, appid"
    assert [*bench.rows(f"SELECT {wanted} FROM result")[0]] == [4, 2, 7, 9, 1]


def test_the_output_template_is_read_when_a_result_is_made(bench):
    bench.made(target_nresults=1)
    bench.outputs(out("renamed"))
    bench.set("workunit", target_nresults=2, transition_time=NOW)
    bench.transition()
    first, second = bench.results("xml_doc_in")
    assert "<open_name>out</open_name>" in first
    assert "<open_name>renamed</open_name>" in second


# Rule 6: the assimilator, after the canonical result.


# Rule 7: files.


@pytest.mark.parametrize(
    ("other", "inputs", "own", "others"),
    [
        pytest.param((OVER, SUCCESS, VALID), 1, 1, 1, id="all are valid"),
        pytest.param((OVER, SUCCESS, INVALID), 1, 1, 1, id="one is invalid"),
        pytest.param((OVER, SUCCESS, INIT), 0, 0, 0, id="one is unchecked"),
        pytest.param((OVER, SUCCESS, INCONCLUSIVE), 0, 0, 0, id="one is undecided"),
        pytest.param((OVER, ERROR, INVALID), 1, 1, 1, id="one failed"),
        pytest.param((OVER, Outcome.VALIDATE_ERROR, INVALID), 1, 1, 1, id="one had no files"),
        pytest.param((OVER, NO_REPLY, INIT), 1, 1, 0, id="one is lost"),
        pytest.param((IN_PROGRESS, Outcome.INIT, INIT), 0, 0, 0, id="one is in progress"),
    ],
)
def test_after_assimilation_files_are_deletable_as_soon_as_nothing_needs_them(
    bench, other, inputs, own, others
):
    bench.workunit(assimilate_state=AssimilateState.DONE)
    bench.canonical()
    state, outcome, checked = other
    bench.result(state, outcome, validate_state=checked, report_deadline=NOW + 9)
    bench.transition()
    assert bench.wu["file_delete_state"] == inputs
    assert bench.results("file_delete_state") == [own, others]


# Rule 8: when to look again.
