"""Text for people: short, visible, with numbers as they are read."""

from hypothesis import given, strategies as st

from boinc_gahp import text


@given(st.binary(max_size=3000))
def test_a_quoted_text_is_short_and_printable(raw):
    shown = text.quoted(raw.decode("utf-8", "surrogateescape"))
    assert len(shown) <= 500
    assert shown.isprintable()
    shown.encode("utf-8")


def test_of_many_words_some_are_listed():
    assert text.listed([], 2) == "none"
    assert text.listed(["a", "b"], 2) == "a, b"
    assert text.listed(["a", "b", "c", "d", "e"], 2) == "a, b and 3 more"


def test_numbers_of_things_and_amounts_have_their_unit():
    assert text.count(1, "job") == "1 job"
    assert text.count(10_000, "batch") == "10,000 batches"
    assert text.amount(2.5e12, "FLOPS") == "2.5 TFLOPS"
    assert text.amount(1e9, "FLOPS") == "1 GFLOPS"
