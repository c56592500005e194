"""The rules of ``back-end.rst``, "Transitioner", and of BOINC's oldest pseudo-code, one by one.

M, N, A, B and C are those of the documents: min_quorum, target_nresults, max_error_results,
max_total_results and max_success_results.
"""

import pytest

from boinc_gahp.localproject.backend.transitioner import transition_pass
from boinc_gahp.localproject.states import (
    NEVER,
    AssimilateState,
    ErrorMask,
    FileDeleteState,
    Outcome,
    ValidateState,
)
from tests.localproject.bench import (
    ERROR,
    IN_PROGRESS,
    INACTIVE,
    INCONCLUSIVE,
    INIT,
    INVALID,
    NO_CHECK,
    NO_REPLY,
    NOW,
    OVER,
    SUCCESS,
    UNSENT,
    VALID,
)
from tests.localproject.on_host import out

# When a result is sent, comes back, or falls off.


def test_sending_sets_the_deadline_and_lets_the_workunit_be_looked_at_then(bench):
    bench.made(delay_bound=50.0)
    assert bench.wu["transition_time"] > NOW + 50
    bench.send()
    assert bench.results("server_state") == [IN_PROGRESS]
    assert bench.results("sent_time") == [NOW]
    assert bench.results("report_deadline") == [NOW + 50]
    assert bench.wu["transition_time"] == NOW + 50


def test_sending_leaves_an_earlier_transition_time(bench):
    bench.made()
    bench.set("workunit", transition_time=NOW + 1)
    bench.send()
    assert bench.wu["transition_time"] == NOW + 1


def test_a_received_success_is_over_and_the_workunit_is_looked_at_now(bench):
    bench.made()
    task = bench.send()
    bench.now += 7
    bench.answer(task)
    assert bench.results("server_state") == [OVER]
    assert bench.results("outcome") == [SUCCESS]
    assert bench.results("validate_state") == [INIT]
    assert bench.results("received_time") == [NOW + 7]
    assert bench.wu["transition_time"] == NOW + 7


def test_a_received_client_error_is_over_and_invalid(bench):
    bench.made()
    bench.answer(bench.send(), status=3)
    assert bench.results("server_state") == [OVER]
    assert bench.results("outcome") == [ERROR]
    assert bench.results("validate_state") == [INVALID]
    assert bench.results("exit_status") == [3]
    assert bench.wu["transition_time"] == NOW


# Rule 1: results past their deadline.


@pytest.mark.parametrize(
    ("after", "late"),
    [
        pytest.param(-1, False, id="before the deadline"),
        pytest.param(0, False, id="at the deadline"),
        pytest.param(1, True, id="after the deadline"),
    ],
)
def test_a_result_in_progress_past_its_deadline_is_over_without_reply(bench, after, late):
    bench.workunit()
    bench.result(IN_PROGRESS, report_deadline=NOW)
    bench.now += after
    bench.set("workunit", transition_time=bench.now)
    bench.transition()
    state = (OVER, NO_REPLY) if late else (IN_PROGRESS, Outcome.INIT)
    assert (bench.results("server_state")[0], bench.results("outcome")[0]) == state
    assert bench.transition() == 0


def test_a_reply_that_comes_after_its_time_is_out_counts_all_the_same(bench):
    bench.made()
    task = bench.send()
    bench.now += 101
    bench.transition()
    assert bench.results("outcome") == [NO_REPLY, Outcome.INIT]
    bench.answer(task)
    bench.settle()
    assert bench.results("outcome") == [SUCCESS, Outcome.DIDNT_NEED]
    assert bench.wu["canonical_resultid"] == 1


# Rules 2 and 3: whether the validator is to look.


@pytest.mark.parametrize(
    ("states", "needed"),
    [
        pytest.param([INIT], False, id="fewer successes than M"),
        pytest.param([INIT, INIT], True, id="as many as M"),
        pytest.param([INIT, INCONCLUSIVE], True, id="an undecided one counts"),
        pytest.param([INIT, INVALID], False, id="an invalid one does not count"),
        pytest.param([INCONCLUSIVE, INCONCLUSIVE], False, id="none is new"),
    ],
)
def test_validation_is_needed_once_there_are_m_successes_and_one_is_unchecked(
    bench, states, needed
):
    bench.workunit(min_quorum=2, target_nresults=2)
    for state in states:
        bench.result(OVER, SUCCESS, validate_state=state)
    bench.transition()
    assert bench.wu["need_validate"] == needed


@pytest.mark.parametrize("outcome", [ERROR, NO_REPLY, Outcome.VALIDATE_ERROR])
def test_what_is_no_success_needs_no_validation(bench, outcome):
    bench.workunit()
    bench.result(OVER, outcome)
    bench.transition()
    assert bench.wu["need_validate"] == 0


def test_a_success_after_the_canonical_outputs_are_deleted_is_too_late(bench):
    bench.workunit()
    bench.canonical(file_delete_state=FileDeleteState.DONE)
    bench.result(OVER, SUCCESS)
    bench.transition()
    assert bench.results("validate_state") == [VALID, ValidateState.TOO_LATE]
    assert bench.wu["need_validate"] == 0


# Rule 4: error bits.


def test_a_result_that_couldnt_be_sent_is_an_error(bench):
    bench.workunit()
    bench.result(OVER, Outcome.COULDNT_SEND)
    bench.transition()
    assert bench.wu["error_mask"] == ErrorMask.COULDNT_SEND_RESULT


@pytest.mark.parametrize("outcome", [ERROR, Outcome.VALIDATE_ERROR])
@pytest.mark.parametrize(
    ("errors", "mask"),
    [
        pytest.param(2, 0, id="A errors"),
        pytest.param(3, ErrorMask.TOO_MANY_ERROR_RESULTS, id="more than A"),
    ],
)
def test_more_error_results_than_a_are_an_error(bench, outcome, errors, mask):
    bench.workunit(max_error_results=2, max_total_results=9)
    for _ in range(errors):
        bench.result(OVER, outcome)
    bench.transition()
    assert bench.wu["error_mask"] == mask


@pytest.mark.parametrize(
    ("lost", "needed", "made", "mask"),
    [
        pytest.param(2, 1, 1, 0, id="room for one"),
        pytest.param(2, 3, 1, 0, id="fewer allowed than needed"),
        pytest.param(3, 1, 0, ErrorMask.TOO_MANY_TOTAL_RESULTS, id="none allowed"),
        pytest.param(4, 1, 0, ErrorMask.TOO_MANY_TOTAL_RESULTS, id="more than allowed"),
    ],
)
def test_results_are_made_up_to_b_and_to_need_more_is_an_error(bench, lost, needed, made, mask):
    bench.workunit(max_total_results=3, target_nresults=needed)
    for _ in range(lost):
        bench.result(OVER, NO_REPLY)
    bench.transition()
    assert len(bench.results("id")) == lost + made
    assert bench.wu["error_mask"] == mask


def test_b_results_are_no_error_while_none_is_needed(bench):
    bench.workunit(max_total_results=1)
    bench.result(IN_PROGRESS, report_deadline=NOW + 9)
    bench.transition()
    assert bench.wu["error_mask"] == 0


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


def test_the_number_of_successes_is_left_to_the_validator(bench):
    bench.workunit(max_success_results=1)
    for _ in range(3):
        bench.result(OVER, SUCCESS)
    bench.transition()
    assert bench.wu["error_mask"] == 0


# Rule 5: new results, or none any more.


@pytest.mark.parametrize(
    ("state", "outcome", "made"),
    [
        pytest.param(UNSENT, Outcome.INIT, 2, id="unsent"),
        pytest.param(INACTIVE, Outcome.INIT, 2, id="inactive"),
        pytest.param(IN_PROGRESS, Outcome.INIT, 2, id="in progress"),
        pytest.param(OVER, SUCCESS, 2, id="success"),
        pytest.param(OVER, ERROR, 3, id="client error"),
        pytest.param(OVER, NO_REPLY, 3, id="no reply"),
        pytest.param(OVER, Outcome.VALIDATE_ERROR, 3, id="validate error"),
        pytest.param(OVER, Outcome.CLIENT_DETACHED, 3, id="client detached"),
    ],
)
def test_n_minus_k_results_are_made(bench, state, outcome, made):
    bench.workunit(target_nresults=3)
    bench.result(state, outcome, report_deadline=NOW + 9)
    bench.transition()
    assert bench.results("server_state")[1:] == [UNSENT] * made
    assert bench.results("name") == [f"w_{number}" for number in range(1 + made)]


def test_an_invalid_success_does_not_count_towards_n(bench):
    bench.workunit(target_nresults=1)
    bench.result(OVER, SUCCESS, validate_state=INVALID)
    bench.transition()
    assert bench.results("server_state") == [OVER, UNSENT]


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


def test_no_results_are_made_once_there_is_a_canonical_one(bench):
    bench.workunit(target_nresults=3)
    bench.canonical()
    bench.transition()
    assert len(bench.results("id")) == 1


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


@pytest.mark.parametrize(
    ("state", "outcome", "checked", "becomes"),
    [
        pytest.param(UNSENT, Outcome.INIT, INIT, (OVER, Outcome.DIDNT_NEED, INIT), id="unsent"),
        pytest.param(INACTIVE, Outcome.INIT, INIT, (OVER, Outcome.DIDNT_NEED, INIT), id="inactive"),
        pytest.param(
            IN_PROGRESS, Outcome.INIT, INIT, (IN_PROGRESS, Outcome.INIT, INIT), id="in progress"
        ),
        pytest.param(OVER, SUCCESS, INIT, (OVER, SUCCESS, NO_CHECK), id="unchecked success"),
        pytest.param(OVER, SUCCESS, INCONCLUSIVE, (OVER, SUCCESS, NO_CHECK), id="undecided"),
        pytest.param(OVER, SUCCESS, INVALID, (OVER, SUCCESS, INVALID), id="invalid success"),
        pytest.param(OVER, ERROR, INVALID, (OVER, ERROR, INVALID), id="client error"),
    ],
)
def test_an_error_ends_what_is_unsent_and_leaves_successes_unchecked(
    bench, state, outcome, checked, becomes
):
    bench.workunit(error_mask=ErrorMask.CANCELLED)
    bench.result(state, outcome, validate_state=checked, report_deadline=NOW + 9)
    bench.transition()
    columns = ("server_state", "outcome", "validate_state")
    assert tuple(bench.results(column)[0] for column in columns) == becomes
    assert len(bench.results("id")) == 1


@pytest.mark.parametrize("before", list(AssimilateState))
def test_an_error_calls_the_assimilator_once(bench, before):
    bench.made(error_mask=ErrorMask.CANCELLED, assimilate_state=before)
    assert bench.wu["assimilate_state"] == (before or AssimilateState.READY)


# Rule 6: the assimilator, after the canonical result.


@pytest.mark.parametrize(
    ("state", "outcome", "ready"),
    [
        pytest.param(OVER, SUCCESS, False, id="a success is unchecked"),
        pytest.param(IN_PROGRESS, Outcome.INIT, False, id="one is in progress"),
        pytest.param(UNSENT, Outcome.INIT, False, id="one is unsent"),
        pytest.param(OVER, ERROR, True, id="the other failed"),
    ],
)
def test_a_workunit_with_a_canonical_result_is_assimilated_when_all_are_over_and_checked(
    bench, state, outcome, ready
):
    bench.workunit()
    bench.canonical()
    bench.result(state, outcome, report_deadline=NOW + 9)
    bench.transition()
    assert bench.wu["assimilate_state"] == (
        AssimilateState.READY if ready else AssimilateState.INIT
    )


# Rule 7: files.


@pytest.mark.parametrize("assimilated", [AssimilateState.INIT, AssimilateState.READY])
def test_no_files_are_deleted_before_assimilation(bench, assimilated):
    bench.workunit(assimilate_state=assimilated, error_mask=ErrorMask.CANCELLED)
    bench.result(OVER, ERROR)
    bench.transition()
    assert bench.wu["file_delete_state"] == FileDeleteState.INIT
    assert bench.results("file_delete_state") == [FileDeleteState.INIT]


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


def test_outputs_of_errors_are_deletable_while_others_are_still_out(bench):
    bench.workunit(assimilate_state=AssimilateState.DONE, error_mask=ErrorMask.CANCELLED)
    bench.result(IN_PROGRESS, report_deadline=NOW + 9)
    bench.result(OVER, ERROR)
    bench.result(OVER, SUCCESS, validate_state=NO_CHECK)
    bench.transition()
    ready, untouched = FileDeleteState.READY, FileDeleteState.INIT
    assert bench.results("file_delete_state") == [untouched, ready, ready]
    assert bench.wu["file_delete_state"] == untouched


@pytest.mark.parametrize("state", [FileDeleteState.DONE, FileDeleteState.ERROR])
def test_what_was_deleted_is_not_deleted_again(bench, state):
    bench.workunit(assimilate_state=AssimilateState.DONE, file_delete_state=state)
    bench.canonical(file_delete_state=state)
    bench.transition()
    assert bench.wu["file_delete_state"] == state
    assert bench.results("file_delete_state") == [state]


def test_deletion_can_be_delayed_from_the_last_report_on(bench):
    bench.workunit(assimilate_state=AssimilateState.DONE)
    bench.canonical(received_time=NOW - 40)
    transition_pass(bench.core, NOW, delete_delay=100)
    assert bench.results("file_delete_state") == [FileDeleteState.INIT]
    assert bench.wu["transition_time"] == NOW + 60
    assert transition_pass(bench.core, NOW + 59, delete_delay=100) == 0
    assert transition_pass(bench.core, NOW + 60, delete_delay=100) == 1
    assert bench.results("file_delete_state") == [FileDeleteState.READY]
    assert bench.wu["transition_time"] == NEVER


# Rule 8: when to look again.


@pytest.mark.parametrize("end", ["canonical result", "error"])
def test_a_finished_workunit_with_nothing_in_progress_is_never_looked_at_again(bench, end):
    bench.workunit(error_mask=ErrorMask.CANCELLED if end == "error" else 0)
    if end == "canonical result":
        bench.canonical()
    bench.result(OVER, ERROR)
    bench.transition()
    assert bench.wu["transition_time"] == NEVER


@pytest.mark.parametrize("mask", [0, ErrorMask.CANCELLED], ids=["open", "cancelled"])
def test_a_workunit_is_looked_at_at_the_earliest_deadline(bench, mask):
    bench.workunit(error_mask=mask)
    bench.result(IN_PROGRESS, report_deadline=NOW + 90)
    bench.result(IN_PROGRESS, report_deadline=NOW + 30)
    bench.result(OVER, NO_REPLY, report_deadline=NOW - 30)
    bench.transition()
    assert bench.wu["transition_time"] == NOW + 30


def test_an_open_workunit_is_looked_at_after_a_while_in_any_case(bench):
    bench.made()
    assert NOW < bench.wu["transition_time"] < NOW + 86400
