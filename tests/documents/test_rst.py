import pytest
from docutils import nodes
from docutils.core import publish_doctree
from hypothesis import given, strategies as st

from boinc_gahp_docs import rst

#: Of what help is made, and of what markup is made.
WORDS = st.text(
    st.sampled_from("ab Z09_*`|\\:;.,<>[]{}()$~#@!?'\"/=+-\N{HORIZONTAL ELLIPSIS}"),
    min_size=1,
    max_size=40,
)
PIECES = st.sampled_from(
    ["--json", "NULL", "http://host/", "file:line", "id:5", "me@host", "a_", "- is", "*x*", "|y|"]
)
TEXTS = st.lists(WORDS | PIECES, min_size=1, max_size=6).map(" ".join)


def read(text):
    settings = {"halt_level": 5, "report_level": 1, "warning_stream": "", "_disable_config": True}
    return publish_doctree(text, settings_overrides=settings)


@given(TEXTS, st.sampled_from([("", ""), ("Before ", " after.")]))
def test_plain_text_is_shown_as_it_is_and_can_begin_a_paragraph(text, around):
    before, after = around
    text = " ".join(text.split())
    if not text:
        return
    document = read(f"{before}{rst.prose(text)}{after}")
    assert list(document.findall(nodes.system_message)) == []
    assert " ".join(document.astext().split()) == f"{before}{text}{after}"


@pytest.mark.parametrize(
    "text",
    [
        *("- is standard input", "--json prints JSON", "+1 is more", "* is any name"),
        *("[--app APP]", "1. this", "(a) that", "a) both", ":field: x", ".. x", ">>> x", "__ y"),
        "0::",
    ],
)
def test_what_looks_like_a_list_is_a_paragraph(text):
    document = read(rst.prose(text))
    assert [type(child) for child in document.children] == [nodes.paragraph]
    assert document.astext() == text


@pytest.mark.parametrize("word", ["--json", "NULL", "NO_COLOR", "$BOINC_GAHP_CONFIG"])
def test_what_is_typed_looks_so(word):
    found = list(read(rst.prose(f"With {word} it is so.")).findall(nodes.literal))
    assert [each.astext() for each in found] == [word]
