"""Lines that fit a terminal."""

from boinc_gahp.terminal.output import in_lines
from tests.terminal.screen import Terminal


def test_a_text_breaks_at_words_and_a_command_at_its_end_stays_whole():
    text = "They were not sent, because 9 of them are running: boinc_gahp batch retry 1 --job two"
    with Terminal(30) as terminal:
        assert in_lines(text, terminal.stream).splitlines() == [
            "They were not sent, because 9",
            "of them are running:",
            "boinc_gahp batch retry 1 --job two",
        ]
        assert in_lines("It fits: boinc_gahp check", terminal.stream) == "It fits: boinc_gahp check"
