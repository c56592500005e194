"""How a program ended, as a volunteer's computer tells it."""

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.containers.ending import PROBLEMS, Ending, read_ending


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        (b"0\n", Ending()),
        (b"3\n", Ending(3)),
        (b"128", Ending(128)),
        (b"137\n", Ending(-9)),
        (b"139\n", Ending(-11)),
        (b"192\n", Ending(-64)),
        (b"193\n", Ending(193)),
        (b"255\n", Ending(255)),
    ],
)
def test_a_status_above_128_is_a_signal(text, ending):
    assert read_ending(text) == ending


@pytest.mark.parametrize("word", PROBLEMS)
def test_each_problem_is_told_in_words(word):
    told = read_ending(f"{word} ./fit.py\n".encode()).problem
    assert ("'./fit.py'" in told) == ("{}" in PROBLEMS[word])


@given(st.binary())
@pytest.mark.parametrize("before", [b"", b"1", b"no-program "])
def test_a_volunteer_may_write_anything(before, content):
    ending = read_ending(before + content)
    assert -64 <= ending.exit_status <= 999
    assert ending.problem is None or ending.problem.isprintable()


@pytest.mark.parametrize(
    "content", [b"", b"-1", b"1000", b"0 0", b"\xff", b"no-such-word", b"0" * 9999]
)
def test_nonsense_is_a_problem(content):
    assert read_ending(content).problem


def test_the_names_of_outputs_may_follow():
    assert read_ending(b"3\noutputs:\na\nsub/b c\n") == Ending(3, outputs=("a", "sub/b c"))
    assert read_ending(b"0\noutputs:\n") == Ending(outputs=())
    assert read_ending(b"0\n").outputs is None


@pytest.mark.parametrize(
    ("status", "failure"),
    [(b"0", ""), (b"3", "exit status 3"), (b"137", "signal 9 (SIGKILL)"), (b"192", "signal 64")],
)
def test_a_bad_end_is_told_in_words(status, failure):
    assert read_ending(status).failure.replace(" (SIGRTMAX)", "") == failure
