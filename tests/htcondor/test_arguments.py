"""HTCondor's V2 arguments."""

import re

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.htcondor.attributes import split_v2

WORDS = st.lists(st.text(st.sampled_from(" \t\n\r'\"\\$;,ab\udcff") | st.characters()))


def join_v2(words):
    """Write words as HTCondor does: quotes around what separates and around quotes alone."""
    return " ".join(re.sub(r"([ \t\n\r']+)", _quoted, word) or "''" for word in words)


def _quoted(found):
    return "'{}'".format(found[1].replace("'", "''"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        (" \t\r\n", ()),
        ("a b", ("a", "b")),
        ("  a  b  ", ("a", "b")),
        ("''", ("",)),
        ("'' ''", ("", "")),
        ("''''", ("'",)),
        ("'a b'", ("a b",)),
        ("a' 'b", ("a b",)),
        ("'a'b'c'", ("abc",)),
        ("x''''y", ("x'y",)),
        ("'it''s'", ("it's",)),
        ("'\n'", ("\n",)),
        ('"a b"', ('"a', 'b"')),
        ("a\\ b", ("a\\", "b")),
    ],
)
def test_quotes_group_and_are_written_twice_inside(text, words):
    assert split_v2(text) == words


@pytest.mark.parametrize("text", ["'", "a '", "'a", "a 'b''", "'a' 'b c"])
def test_a_quote_that_is_not_closed_is_named(text):
    with pytest.raises(ValueError, match="is not closed"):
        split_v2(text)


@given(WORDS)
def test_words_survive_being_written_and_read(words):
    assert split_v2(join_v2(words)) == tuple(words)


@given(st.text(st.sampled_from(" 'a\n") | st.characters()))
def test_any_text_is_words_or_a_value_error(text):
    try:
        words = split_v2(text)
    except ValueError:
        assert text.count("'") % 2
    else:
        assert split_v2(join_v2(list(words))) == words
