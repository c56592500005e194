"""Rules of ``back-end.rst``, "Validator", that no history shows (``test_histories.py``)."""

import pytest

from boinc_gahp.localproject.states import Outcome, ServerState, ValidateState
from boinc_gahp.templates.types import OutputFileInfo
from tests.localproject.bench import INCONCLUSIVE, INIT, INVALID, OVER, VALID


def answered(bench, *outputs, validator="bitwise", **columns):
    """Make a workunit with these outputs, each from another host, and let the validator be next."""
    bench.set("app", "id = 1", validator=validator)
    bench.made(**{"min_quorum": len(outputs), "target_nresults": len(outputs), **columns})
    bench.compute(*outputs)
    bench.now += 1
    bench.transition()
    assert bench.wu["need_validate"] == 1


def total_credit(bench, table):
    return float(sum(bench.column(table, "total_credit")))


# With a canonical result: check_pair.


def test_a_success_is_too_late_if_somebody_has_removed_the_canonical_outputs(bench):
    answered(bench, b"yes", target_nresults=2)
    later = bench.send(2)
    bench.validate()
    bench.core.upload.remove(f"w_0_r{bench.results('random')[0]}_0")
    bench.answer(later, 2, files={"out": b"yes"})
    bench.settle()
    assert bench.results("validate_state") == [VALID, ValidateState.TOO_LATE]


# Credit.


def test_each_valid_result_is_granted_the_canonical_credit_once(bench):
    bench.set("app", "id = 1", validator="bitwise")
    bench.made(min_quorum=2, target_nresults=4)
    tasks = [bench.send(host) for host in range(1, 5)]
    for host, (output, seconds) in enumerate([(b"y", 40.0), (b"n", 1.0), (b"y", 20.0)], 1):
        bench.answer(tasks[host - 1], host, files={"out": output}, elapsed_time=seconds)
    bench.transition()
    bench.validate()
    bench.answer(tasks[3], 4, files={"out": b"y"}, elapsed_time=9999.0)
    bench.settle()
    day = 200 / 86400
    assert bench.wu["canonical_credit"] == pytest.approx(20 * day)
    assert bench.results("granted_credit") == pytest.approx([20 * day, 0, 20 * day, 20 * day])
    assert bench.results("claimed_credit") == pytest.approx([40 * day, day, 20 * day, 9999 * day])
    assert bench.column("host", "total_credit")[:4] == pytest.approx(
        [20 * day, 0, 20 * day, 20 * day]
    )
    assert total_credit(bench, "user") == pytest.approx(60 * day)
    bench.set("workunit", need_validate=1)
    bench.settle()
    assert total_credit(bench, "user") == pytest.approx(60 * day)


# Output files.


@pytest.mark.parametrize(
    ("files", "says", "problem"),
    [
        pytest.param(
            {"out": b"half"},
            {"out": b"half of it"},
            "the host reported 10 bytes, but the file has 4",
            id="cut",
        ),
        pytest.param(
            {"out": b"fort"}, {"out": b"four"}, "the host reported MD5", id="other contents"
        ),
        pytest.param({}, {"out": b"whole"}, "the file w_0_r", id="not uploaded"),
        pytest.param({"out": b"whole"}, {}, "the host did not report this file", id="not reported"),
    ],
)
def test_a_result_whose_files_are_not_what_its_host_reported_is_an_error(
    bench, files, says, problem, caplog
):
    bench.made()
    bench.answer(bench.send(), files=files, says=says)
    bench.settle()
    assert bench.results("outcome") == [Outcome.VALIDATE_ERROR, Outcome.INIT]
    assert bench.results("validate_state") == [INVALID, INIT]
    assert bench.results("server_state") == [OVER, ServerState.UNSENT]
    assert total_credit(bench, "user") == 0
    assert f"w_0 has a validate error: out: {problem}" in caplog.text
    bench.answer(bench.send(2), 2)
    bench.settle()
    assert bench.wu["canonical_resultid"] == 2


# The supplied validators.


def _several(bench):
    bench.outputs(
        OutputFileInfo("out", "<OUTFILE_0/>", no_delete=True),
        OutputFileInfo("log", "<OUTFILE_1/>", no_delete=True, no_validate=True),
        OutputFileInfo("more", "<OUTFILE_2/>", no_delete=True, optional=True),
    )


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        pytest.param("out log", "out log", True, id="same"),
        pytest.param("out log more", "out log more", True, id="same with the optional one"),
        pytest.param("out log", "OUT log", False, id="other bytes"),
        pytest.param("out log", "out LOG", True, id="other bytes in one with no_validate"),
        pytest.param("out log more", "out log", False, id="optional one absent"),
        pytest.param("out log more", "out log MORE", False, id="other bytes in the optional one"),
    ],
)
def test_bitwise_wants_the_same_bytes_in_all_files_that_are_validated(bench, first, second, agree):
    _several(bench)
    bench.set("app", "id = 1", validator="bitwise")
    bench.made(min_quorum=2, target_nresults=2)
    tasks = [bench.send(1), bench.send(2)]
    for host, (task, words) in enumerate(zip(tasks, (first, second), strict=True), 1):
        files = {word.lower(): word.encode() for word in words.split()}
        bench.answer(task, host, files=files)
    bench.transition()
    bench.validate()
    assert bench.results("validate_state") == ([VALID] * 2 if agree else [INCONCLUSIVE] * 2)
