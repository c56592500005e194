"""Results that come back after their deadline, when NO_REPLY stands for them already."""

import pytest

from boinc_gahp.localproject.states import ErrorMask, FileDeleteState, Outcome, ValidateState
from boinc_gahp.templates.types import OutputFileInfo
from tests.localproject.bench import ERROR, INIT, INVALID, NO_REPLY, SUCCESS, VALID


def timed_out(bench, **columns):
    """Make a workunit whose first result host 1 has, past its deadline; return the task."""
    bench.set("app", validator="bitwise")
    bench.made("w", **columns)
    task = bench.send(1)
    assert task is not None
    bench.now += 101
    bench.transition()
    assert bench.results("outcome")[0] == NO_REPLY
    return task


def retried(bench, task, late, *, deleted=False):
    """Let host 2 answer the result that was made instead, and host 1 after that.

    In between, the outputs are deleted, or are to be.
    """
    bench.answer(bench.send(2), 2, files={"out": b"good"})
    bench.transition()
    bench.validate()
    if deleted:
        bench.settle()
    assert bench.wu["canonical_resultid"] == 2
    bench.now += 1
    bench.answer(task, 1, files={"out": late})
    bench.settle()


def test_one_that_agrees_with_the_canonical_result_is_valid_and_credited(bench):
    retried(bench, timed_out(bench), b"good")
    assert bench.results("validate_state") == [VALID, VALID]
    assert bench.results("received_time") == [bench.now, bench.now - 1]
    granted = bench.results("granted_credit")
    assert granted[0] == granted[1] == bench.wu["canonical_credit"] > 0
    assert bench.column("host", "total_credit")[:2] == granted


def test_one_that_differs_from_the_canonical_result_is_invalid(bench):
    retried(bench, timed_out(bench), b"bad!")
    assert bench.results("validate_state") == [INVALID, VALID]
    assert bench.results("granted_credit")[0] == 0


def test_one_that_comes_when_the_outputs_are_deleted_is_too_late(bench):
    bench.outputs(OutputFileInfo("out", "<OUTFILE_0/>"))
    retried(bench, timed_out(bench), b"good", deleted=True)
    assert bench.results("file_delete_state")[1] == FileDeleteState.DONE
    assert bench.results("outcome") == [SUCCESS, SUCCESS]
    assert bench.results("validate_state") == [ValidateState.TOO_LATE, VALID]


def test_one_completes_a_quorum(bench):
    task = timed_out(bench, min_quorum=2, target_nresults=2)
    bench.answer(bench.send(2), 2)
    bench.settle()
    assert bench.wu["canonical_resultid"] == 0
    bench.answer(task, 1)
    bench.settle()
    assert bench.results("outcome") == [SUCCESS, SUCCESS, Outcome.DIDNT_NEED]
    assert bench.results("validate_state") == [VALID, VALID, INIT]


@pytest.mark.parametrize("allowed", [0, 1])
def test_one_that_failed_is_an_error_and_no_silence(bench, allowed):
    bench.answer(timed_out(bench, max_error_results=allowed), 1, status=9)
    bench.settle()
    assert bench.results("outcome")[0] == ERROR
    assert bench.wu["error_mask"] == (0 if allowed else ErrorMask.TOO_MANY_ERROR_RESULTS)


def test_one_makes_a_job_done_that_had_failed(bench):
    task = timed_out(bench, max_total_results=1)
    assert bench.wu["error_mask"] == ErrorMask.TOO_MANY_TOTAL_RESULTS
    bench.settle()
    bench.answer(task, 1)
    bench.transition()
    assert bench.results("validate_state") == [ValidateState.NO_CHECK]
    bench.settle()
    assert bench.results("validate_state") == [VALID]
    assert bench.wu["canonical_resultid"] == 1
