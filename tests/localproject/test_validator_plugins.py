"""Validators of an app's own: functions, modules, and such that go wrong."""

import pytest

from tests.localproject.bench import INCONCLUSIVE, INIT, INVALID, VALID

#: Two numbers agree if they differ by at most 1.
NEAR = """
def number(instance):
    return int(instance.file("out").path.read_text())

def compare(first, second):
    return abs(number(first) - number(second)) <= 1
"""


def answered(bench, source, spec, *outputs, **columns):
    """Make a workunit with these outputs, for the validator that ``spec`` names in ``source``."""
    bench.module("mine", source)
    bench.set("app", "id = 1", validator=spec)
    counts = {"min_quorum": len(outputs), "target_nresults": len(outputs), **columns}
    bench.made(f"w{len(bench.column('workunit', 'id'))}", **counts)
    bench.compute(*outputs)
    bench.transition()


def test_the_canonical_result_is_one_with_which_a_strict_majority_agrees(bench):
    # 1 agrees with 2, 2 with 3, but 1 not with 3: only 2 has a majority that is all of them.
    answered(bench, NEAR, "mine:compare", b"1", b"3", b"2")
    bench.validate()
    assert bench.wu["canonical_resultid"] == 3
    assert bench.results("validate_state") == [VALID] * 3


def test_a_chain_in_which_no_one_has_a_majority_is_undecided(bench):
    outputs = (b"1", b"2", b"4", b"5")
    answered(bench, NEAR, "mine:compare", *outputs, min_quorum=2, max_success_results=4)
    bench.validate()
    assert bench.wu["canonical_resultid"] == 0
    assert bench.results("validate_state") == [INCONCLUSIVE] * 4


#: The smallest number is canonical, whatever the others are.
SMALLEST = (
    NEAR
    + """
def check_set(results):
    return min(results, key=number)

check_pair = compare
"""
)


def test_an_apps_own_rule_chooses_the_canonical_result(bench):
    answered(bench, SMALLEST, "mine:check_set", b"7", b"5", b"6")
    bench.validate()
    assert bench.wu["canonical_resultid"] == 2
    assert bench.results("validate_state") == [INVALID, VALID, VALID]


def test_an_apps_own_rule_chooses_none_or_one_of_the_results(bench):
    answered(bench, NEAR + "check_set = len\ncheck_pair = compare\n", "mine:check_set", b"1", b"2")
    bench.validate()
    assert "chose 2: expected one of the results, or None" in bench.trouble("validator")
    bench.module("mine", SMALLEST.replace("min(results, key=number)", "None"))
    bench.now += 10
    bench.validate()
    assert bench.results("validate_state") == [INCONCLUSIVE] * 2


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("def compare(a, b):\n    1 / 0\n", "raised ZeroDivisionError", id="raises"),
        pytest.param("def compare(a, b):\n    exit(3)\n", "raised SystemExit: 3", id="exits"),
        pytest.param("def compare(a):\n    ...\n", "raised TypeError", id="takes too little"),
        pytest.param("def compare(a, b):\n    ...\n", "returned None", id="returns None"),
        pytest.param("def compare(a, b):\n    return 0.9\n", "returned 0.9", id="a likeness"),
        pytest.param("def compare(a, b):\n    return 'no'\n", "returned 'no'", id="a word"),
        pytest.param("def compare(a, b):\n", "cannot be imported", id="no Python"),
    ],
)
def test_a_validator_that_goes_wrong_is_asked_again_later_and_nothing_is_lost(
    bench, source, words, caplog
):
    answered(bench, source, "mine:compare", b"1", b"2")
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


def test_what_happens_to_a_workunit_meanwhile_leaves_its_waiting_time(bench):
    answered(bench, "def compare(a, b):\n    1 / 0\n", "mine:compare", b"1", b"2")
    bench.validate()
    bench.set("workunit", transition_time=bench.now)
    assert bench.transition() == 1
    assert bench.validate() == 0


def test_the_same_trouble_with_many_workunits_is_logged_once(bench, caplog):
    for _ in range(5):
        answered(bench, "def compare(a, b):\n    1 / 0\n", "mine:compare", b"1", b"2")
    assert bench.validate() == 5
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


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
    "change",
    [
        "UPDATE workunit SET error_mask = 16",
        "UPDATE result SET outcome = 3 WHERE id = 1",
        "INSERT OR IGNORE INTO result (create_time, workunitid, server_state, name, xml_doc_in, "
        "batch, random, appid) VALUES (1, 1, 2, 'x', '', 1, 1, 1)",
        "DELETE FROM result WHERE id = 2",
    ],
    ids=["workunit cancelled", "result changed", "result added", "result gone"],
)
def test_a_decision_counts_only_if_nothing_has_happened_meanwhile(bench, change):
    answered(bench, MEDDLING.format(change=change), "mine:compare", b"1", b"2")
    assert bench.validate() == 1
    assert bench.wu["canonical_resultid"] == 0
    assert (bench.wu["need_validate"], bench.wu["retry_time"]) == (1, 0)


def test_a_validator_runs_outside_any_transaction(bench):
    harmless = "UPDATE user SET total_credit = total_credit"
    answered(bench, MEDDLING.format(change=harmless), "mine:compare", b"1", b"2")
    bench.validate()
    assert bench.wu["canonical_resultid"] == 1
