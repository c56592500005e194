import pytest

from boinc_gahp.errors import BadRequest
from boinc_gahp.gahp import boinc_commands, commands
from boinc_gahp.gahp.conversation import Conversation
from boinc_gahp.gahp.results import seconds

RESULTS = commands.Results()
ON = commands.AsyncModeOn()
OFF = commands.AsyncModeOff()


def test_without_asynchronous_mode_there_is_no_r():
    conversation = Conversation()
    assert conversation.add_result(b"2 NULL") == b""
    assert conversation.answer(RESULTS) == b"S 1\n2 NULL\n"


def test_results_from_before_asynchronous_mode_give_no_r_and_later_ones_do():
    conversation = Conversation()
    conversation.add_result(b"2 NULL")
    assert conversation.answer(ON) == b"S\n"
    assert conversation.add_result(b"3 NULL") == b"R\n"
    assert conversation.answer(RESULTS) == b"S 2\n2 NULL\n3 NULL\n"


def test_r_is_not_repeated_when_asynchronous_mode_is_switched_off_and_on():
    conversation = Conversation()
    conversation.answer(ON)
    assert conversation.add_result(b"2 NULL") == b"R\n"
    conversation.answer(OFF)
    assert conversation.add_result(b"3 NULL") == b""
    conversation.answer(ON)
    assert conversation.add_result(b"4 NULL") == b""


def test_the_prefix_is_on_every_line_after_the_answer_that_set_it():
    conversation = Conversation()
    conversation.answer(ON)
    assert conversation.answer(commands.ResponsePrefix("GAHP:")) == b"S\n"
    assert conversation.success() == b"GAHP:S\n"
    assert conversation.syntax_error() == b"GAHP:E\n"
    assert conversation.busy() == b"GAHP:F Threads\\ limit\\ reached\n"
    assert conversation.add_result(b"2 NULL") == b"GAHP:R\n"
    assert conversation.answer(RESULTS) == b"GAHP:S 1\nGAHP:2 NULL\n"
    assert conversation.answer(commands.ResponsePrefix("b\udcff ")) == b"GAHP:S\n"
    assert conversation.success() == b"b\xff S\n"


@pytest.mark.parametrize("none", ["", "NULL"])
def test_a_prefix_can_be_taken_back(none):
    conversation = Conversation()
    conversation.answer(commands.ResponsePrefix("GAHP:"))
    assert conversation.answer(commands.ResponsePrefix(none)) == b"GAHP:S\n"
    assert conversation.success() == b"S\n"
    assert conversation.prefix == ""


@pytest.mark.parametrize("prefix", ["a\nb", "\r"], ids=["LF", "CR"])
def test_a_prefix_that_breaks_lines_is_refused(prefix):
    conversation = Conversation()
    with pytest.raises(BadRequest):
        conversation.answer(commands.ResponsePrefix(prefix))
    assert conversation.success() == b"S\n"


def test_quit_is_answered():
    conversation = Conversation()
    assert conversation.answer(commands.Quit()) == b"S\n"
    assert conversation.quitting


def test_what_is_not_for_the_conversation_is_a_bug():
    with pytest.raises(TypeError, match="BOINC_PING"):
        Conversation().answer(boinc_commands.Ping("2"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (12.5, "12.5"),
        (1e-9, "0"),
        (100.0, "100"),
        (1e6 / 3, "333333.333333"),
        (float("nan"), "0"),
        (-1.0, "0"),
        (float("inf"), "0"),
    ],
)
def test_times_are_written_without_an_exponent(value, expected):
    assert seconds(value) == expected
