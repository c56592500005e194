"""The validator where no history shows it (``back-end.rst``), and validators of an app's own."""

import pytest

from boinc_gahp.localproject.states import Outcome, ValidateState
from tests.localproject.bench import INCONCLUSIVE, INIT, INVALID, VALID
from tests.localproject.on_host import out


def answered(bench, spec, *outputs, source="", **columns):
    """Make a workunit with these outputs, each from another host; the validator is next.

    ``spec`` names the app's validator; one of its own is in ``source``.
    """
    bench.module("mine", source)
    bench.set("app", "id = 1", validator=spec)
    counts = {"min_quorum": len(outputs), "target_nresults": len(outputs), **columns}
    bench.made(f"w{len(bench.column('workunit', 'id'))}", **counts)
    bench.compute(*outputs)
    bench.transition()


# With a canonical result: check_pair.


def test_a_success_is_too_late_if_somebody_has_removed_the_canonical_outputs(bench):
    answered(bench, "bitwise", b"yes", target_nresults=2)
    later = bench.send(2)
    bench.validate()
    bench.core.upload.remove(f"w0_0_r{bench.results('random')[0]}_0")
    bench.answer(later, 2, files={"out": b"yes"})
    bench.settle()
    assert bench.results("validate_state") == [VALID, ValidateState.TOO_LATE]


# Credit.


def test_each_valid_result_is_granted_the_smallest_claim_of_the_first_ones(bench):
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
    assert bench.results("granted_credit") == pytest.approx([20 * day, 0, 20 * day, 20 * day])
    assert bench.results("claimed_credit") == pytest.approx([40 * day, day, 20 * day, 9999 * day])


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
    assert f"w_0 has a validate error: out: {problem}" in caplog.text


# The supplied validators.


@pytest.mark.parametrize(
    ("second", "agree"),
    [("out log more", True), ("out LOG more", True), ("out log", False), ("out log MORE", False)],
    ids=["same", "other bytes in one with no_validate", "optional absent", "optional other"],
)
def test_bitwise_wants_the_same_bytes_in_all_files_that_are_validated(bench, second, agree):
    bench.outputs(out("out"), out("log", 1, no_validate=True), out("more", 2, optional=True))
    bench.set("app", "id = 1", validator="bitwise")
    bench.made(min_quorum=2, target_nresults=2)
    tasks = [bench.send(1), bench.send(2)]
    for host, (task, words) in enumerate(zip(tasks, ("out log more", second), strict=True), 1):
        files = {word.lower(): word.encode() for word in words.split()}
        bench.answer(task, host, files=files)
    bench.transition()
    bench.validate()
    assert bench.results("validate_state") == ([VALID] * 2 if agree else [INCONCLUSIVE] * 2)


#: Two numbers agree if they differ by at most 1.
NEAR = """
def number(instance):
    return int(instance.file("out").path.read_text())

def compare(first, second):
    return abs(number(first) - number(second)) <= 1
"""


@pytest.mark.parametrize(
    ("outputs", "canonical", "state"),
    [
        # 1 agrees with 2, 2 with 3, but 1 not with 3: only 2 has a majority that is all of them.
        ((b"1", b"3", b"2"), 3, VALID),
        ((b"1", b"2", b"4", b"5"), 0, INCONCLUSIVE),
    ],
    ids=["one agrees with all", "a chain"],
)
def test_the_canonical_result_is_one_with_which_a_strict_majority_agrees(
    bench, outputs, canonical, state
):
    answered(bench, "mine:compare", *outputs, min_quorum=2, max_success_results=4, source=NEAR)
    bench.validate()
    assert bench.wu["canonical_resultid"] == canonical
    assert bench.results("validate_state") == [state] * len(outputs)


#: The smallest number is canonical, whatever the others are.
SMALLEST = (
    NEAR
    + """
def check_set(results):
    return min(results, key=number)

check_pair = compare
"""
)


def test_an_apps_own_rule_chooses_the_canonical_result_or_none(bench):
    wrong = NEAR + "check_set = len\ncheck_pair = compare\n"
    answered(bench, "mine:check_set", b"7", b"5", b"6", source=wrong)
    bench.validate()
    assert "chose 3: expected one of the results, or None" in bench.trouble("validator")
    for source, states in (
        (SMALLEST.replace("min(results, key=number)", "None"), [INCONCLUSIVE] * 3),
        (SMALLEST, [INVALID, VALID, VALID]),
    ):
        bench.module("mine", source)
        bench.set("workunit", need_validate=1, retry_time=0)
        bench.validate()
        assert bench.results("validate_state") == states
    assert bench.wu["canonical_resultid"] == 2


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("def compare(a, b):\n    1 / 0\n", "raised ZeroDivisionError", id="raises"),
        pytest.param("def compare(a, b):\n    exit(3)\n", "raised SystemExit: 3", id="exits"),
        pytest.param("def compare(a, b):\n    ...\n", "returned None", id="returns None"),
        pytest.param("def compare(a, b):\n    return 0.9\n", "returned 0.9", id="a likeness"),
        pytest.param("def compare(a, b):\n", "cannot be imported", id="no Python"),
    ],
)
def test_a_validator_that_goes_wrong_is_asked_again_later_and_nothing_is_lost(
    bench, source, words, caplog
):
    answered(bench, "mine:compare", b"1", b"2", source=source)
    assert bench.validate() == 1
    assert bench.wu["need_validate"] == 1
    assert bench.results("validate_state") == [INIT, INIT]
    assert words in bench.trouble("validator")
    assert "(workunit w0, tried again after 10 s)" in bench.trouble("validator")
    assert words in caplog.text
    assert bench.validate() == 0
    bench.module("mine", NEAR)
    bench.now += 10
    bench.validate()
    assert bench.wu["canonical_resultid"] == 1


def test_the_same_trouble_with_many_workunits_is_logged_once_and_all_wait(bench, caplog):
    for _ in range(5):
        answered(bench, "mine:compare", b"1", b"2", source="def compare(a, b):\n    1 / 0\n")
    assert bench.validate() == 5
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    # Whatever happens to one meanwhile.
    bench.set("workunit", "id = 1", transition_time=bench.now)
    assert (bench.transition(), bench.validate()) == (1, 0)


#: Works on the database by itself while it is asked, as another program may at that time.
MEDDLING = """
import sqlite3
from pathlib import Path

def compare(first, second):
    database = Path(__file__).parents[1] / "project.sqlite"
    connection = sqlite3.connect(database, timeout=0)
    with connection:
        connection.execute({change!r})
    connection.close()
    return True
"""


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        # It is asked outside of any transaction.
        ("UPDATE user SET total_credit = total_credit", True),
        ("UPDATE workunit SET error_mask = 16", False),
        ("UPDATE result SET outcome = 3 WHERE id = 1", False),
        ("INSERT OR IGNORE INTO result (create_time, workunitid, server_state, name, xml_doc_in, "
        "batch, random, appid) VALUES (1, 1, 2, 'x', '', 1, 1, 1)", False),
    ],
    ids=["another table", "workunit cancelled", "result changed", "result added"],
)  # fmt: skip
def test_a_decision_counts_only_if_nothing_has_happened_meanwhile(bench, change, counts):
    answered(bench, "mine:compare", b"1", b"2", source=MEDDLING.format(change=change))
    assert bench.validate() == 1
    assert bench.wu["canonical_resultid"] == int(counts)
    assert (bench.wu["need_validate"], bench.wu["retry_time"]) == (int(not counts), 0)
