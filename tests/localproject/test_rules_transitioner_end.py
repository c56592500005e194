"""How a workunit ends: rules 6 to 8 of ``back-end.rst``, "Transitioner", one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject.backend.transitioner import transition_pass
from boinc_gahp.localproject.states import (
    NEVER,
    AssimilateState,
    ErrorMask,
    FileDeleteState,
    Outcome,
    ServerState,
    ValidateState,
)
from tests.localproject.bench import (
    ERROR,
    IN_PROGRESS,
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

if TYPE_CHECKING:
    from tests.localproject.bench import Bench


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
    bench: Bench, state: ServerState, outcome: Outcome, ready: bool
) -> None:
    bench.workunit()
    bench.canonical()
    bench.result(state, outcome, report_deadline=NOW + 9)
    bench.transition()
    assert bench.wu["assimilate_state"] == (
        AssimilateState.READY if ready else AssimilateState.INIT
    )


# Rule 7: files.


@pytest.mark.parametrize("assimilated", [AssimilateState.INIT, AssimilateState.READY])
def test_no_files_are_deleted_before_assimilation(
    bench: Bench, assimilated: AssimilateState
) -> None:
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
    bench: Bench,
    other: tuple[ServerState, Outcome, ValidateState],
    inputs: int,
    own: int,
    others: int,
) -> None:
    bench.workunit(assimilate_state=AssimilateState.DONE)
    bench.canonical()
    state, outcome, checked = other
    bench.result(state, outcome, validate_state=checked, report_deadline=NOW + 9)
    bench.transition()
    assert bench.wu["file_delete_state"] == inputs
    assert bench.results("file_delete_state") == [own, others]


def test_outputs_of_errors_are_deletable_while_others_are_still_out(bench: Bench) -> None:
    bench.workunit(assimilate_state=AssimilateState.DONE, error_mask=ErrorMask.CANCELLED)
    bench.result(IN_PROGRESS, report_deadline=NOW + 9)
    bench.result(OVER, ERROR)
    bench.result(OVER, SUCCESS, validate_state=NO_CHECK)
    bench.transition()
    ready, untouched = FileDeleteState.READY, FileDeleteState.INIT
    assert bench.results("file_delete_state") == [untouched, ready, ready]
    assert bench.wu["file_delete_state"] == untouched


@pytest.mark.parametrize("state", [FileDeleteState.DONE, FileDeleteState.ERROR])
def test_what_was_deleted_is_not_deleted_again(bench: Bench, state: FileDeleteState) -> None:
    bench.workunit(assimilate_state=AssimilateState.DONE, file_delete_state=state)
    bench.canonical(file_delete_state=state)
    bench.transition()
    assert bench.wu["file_delete_state"] == state
    assert bench.results("file_delete_state") == [state]


def test_deletion_can_be_delayed_from_the_last_report_on(bench: Bench) -> None:
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
def test_a_finished_workunit_with_nothing_in_progress_is_never_looked_at_again(
    bench: Bench, end: str
) -> None:
    bench.workunit(error_mask=ErrorMask.CANCELLED if end == "error" else 0)
    if end == "canonical result":
        bench.canonical()
    bench.result(OVER, ERROR)
    bench.transition()
    assert bench.wu["transition_time"] == NEVER


@pytest.mark.parametrize("mask", [0, ErrorMask.CANCELLED], ids=["open", "cancelled"])
def test_a_workunit_is_looked_at_at_the_earliest_deadline(bench: Bench, mask: int) -> None:
    bench.workunit(error_mask=mask)
    bench.result(IN_PROGRESS, report_deadline=NOW + 90)
    bench.result(IN_PROGRESS, report_deadline=NOW + 30)
    bench.result(OVER, NO_REPLY, report_deadline=NOW - 30)
    bench.transition()
    assert bench.wu["transition_time"] == NOW + 30


def test_an_open_workunit_is_looked_at_after_a_while_in_any_case(bench: Bench) -> None:
    bench.made()
    assert NOW < bench.wu["transition_time"] < NOW + 86400
