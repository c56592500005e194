"""Web pages in the place of a reply: told from replies, and their words."""

import re

import pytest
from hypothesis import example, given, strategies as st

from boinc_gahp.rpc._pages import PAGE_BYTES, is_page, page_beginning, page_text, page_title

PIECES = ["<!--", "-->", "<!", "--", ">", "<", " ", "\n", "<html", "<HTML>", "<!DOCTYPE html"]
PIECES += ["<!doctype  HTML>", "<htmlx>", "x", "<?xml?>", "\t", "<!---->", "<!-- a -->"]
#: What is meant by a page, in the words of a pattern that would take for ever on longer ones.
PAGE = re.compile(
    rb"\s*(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)


@example(["<!-->", "-->", "<html>"])
@given(st.lists(st.sampled_from(PIECES), max_size=10))
def test_a_page_is_what_has_a_page_s_root_after_comments(pieces):
    body = "".join(pieces).encode()
    assert is_page(body) == bool(PAGE.match(body))


@given(st.text())
def test_any_text_has_words_and_a_title(text):
    for found in (page_text(text), page_title(text)):
        assert found == " ".join(found.split())


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<html><head><title>Log in</title></head></html>", "Log in"),
        ("<HTML><TITLE lang='de'>Bitte\n warten</TITLE>", "Bitte warten"),
        ("<html><title>&lt;b&gt;</title>", "<b>"),
        ("<html><body><h1>Gone</h1>", "Gone"),
        ("<html><nav>Home</nav><p>It is <b>gone</b>.<script>x</script>", "It is gone ."),
        ("", ""),
    ],
)
def test_the_title_of_a_page_or_its_first_words(page, title):
    assert page_title(page) == title


@given(st.integers(PAGE_BYTES - 60, PAGE_BYTES + 60), st.sampled_from([" ", "\n", "<"]))
def test_a_page_is_not_cut_within_a_word(place, end):
    secret = "0123456789abcdefghijklmnopqrstuv"
    kept = page_beginning(("x" * place + end + secret + end).encode() + b"y" * 100)
    assert not any(kept.endswith(secret[:length]) for length in range(1, len(secret)))
