"""Words of Result Lines: as many as the gridmanager wants, whatever is in them."""

import pytest
from hypothesis import given

from boinc_gahp.gahp.commands import COMMANDS
from boinc_gahp.gahp.lines import split
from boinc_gahp.gahp.results import BOINC, NO_AD
from tests.helpers import TEXTS

#: ``gridmanager-batch.rst``, "Result lines": a command's words in a success and in an error.
LINES = {
    "BLAH_PING": (["7", "0", "NULL"], ["7", "1", "{}"]),
    "BLAH_JOB_SUBMIT": (["7", "0", "NULL", "boinc/1.2"], ["7", "1", "{}", "NULL"]),
    "BLAH_JOB_STATUS": (["7", "0", "NULL", "5", "[ A = 1 ]"], ["7", "1", "{}", "0", "[ ]"]),
    "BLAH_JOB_CANCEL": (["7", "0", "NULL"], ["7", "1", "{}"]),
    "BLAH_JOB_REFRESH_PROXY": (["7", "0", "NULL"], ["7", "1", "{}"]),
    "BOINC_PING": (["7", "NULL"], ["7", "{}"]),
    "BOINC_QUERY_BATCHES": (["7", "NULL", "1.5", "1", "a b", ""], ["7", "{}"]),
}


def as_htcondor_reads(line):
    """Split a line as HTCondor does, a byte at a time; for it, an unescaped LF ends the line."""
    words = [b""]
    escaped = False
    for number in line:
        byte = bytes([number])
        if escaped:
            words[-1] += byte
            escaped = False
        elif byte == b"\\":
            escaped = True
        elif byte == b" ":
            words.append(b"")
        else:
            assert byte not in b"\r\n"
            words[-1] += byte
    assert not escaped
    return words


def test_all_commands_of_htcondor_10_are_here():
    assert {name for name in COMMANDS if name.startswith("BLAH_")} < set(LINES)


@pytest.mark.parametrize("command", LINES)
@given(TEXTS)
def test_an_error_has_its_words_whatever_its_text(command, text):
    form = COMMANDS[command].form
    line = form.error("7", text)
    words = as_htcondor_reads(line)
    at = LINES[command][1].index("{}")
    message = words[at].decode("utf-8", "surrogateescape")
    words[at] = b"{}"
    assert [word.decode() for word in words] == LINES[command][1]
    assert message.strip() not in ("", "NULL")
    assert message.isprintable()


@pytest.mark.parametrize("command", LINES)
def test_a_success_has_its_words(command):
    form = COMMANDS[command].form
    values = LINES[command][0][1 + len(form.good) :]
    line = form.success("7", values)
    assert [word.decode() for word in as_htcondor_reads(line)] == LINES[command][0]


@given(TEXTS)
def test_an_ad_comes_back_whatever_is_in_it(ad):
    words = as_htcondor_reads(COMMANDS["BLAH_JOB_STATUS"].form.success("7", ["4", ad]))
    assert words == [b"7", b"0", b"NULL", b"4", ad.encode("utf-8", "surrogateescape")]


@pytest.mark.parametrize("values", [[], ["5"], ["5", NO_AD, "more"]], ids=len)
def test_a_wrong_number_of_values_never_leaves(values):
    with pytest.raises(ValueError, match="instead of 2"):
        COMMANDS["BLAH_JOB_STATUS"].form.success("7", values)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("two\nlines\r\nand more", "two lines and more"),
        ("no\ttab, no \x1b[31mcolour", "no\\ttab, no \\x1b[31mcolour"),
        ("right to left \u202e and \x9b2J", "right to left \\u202e and \\x9b2J"),
        ("a name \udcff\udcfe", "a name \\xff\\xfe"),
        ("Größe", "Größe"),
        ("NULL", "an error without a message (NULL)"),
        (" \n ", "an error without a message (empty)"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("command", ["BLAH_JOB_SUBMIT", "BOINC_SUBMIT"])
def test_a_hold_reason_is_one_readable_line(command, text, told):
    form = COMMANDS[command].form
    assert split(form.error("7", text))[1 + len(form.bad)] == told


def test_what_a_gridmanager_looks_up_keeps_its_bytes():
    line = BOINC.error("2", "no batch named ", "a\n\udcff")
    assert line == b"2 no\\ batch\\ named\\ a\\\n\xff"
