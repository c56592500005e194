"""HTCondor's V2 arguments."""

import pytest

from boinc_gahp.htcondor.attributes import split_v2


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
