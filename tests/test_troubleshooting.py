"""docs/troubleshooting.rst: each error's code leads to a situation, and what it quotes is said."""

import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import boinc_gahp
from tests.helpers import error_classes

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "troubleshooting.rst"

CODE = re.compile(r"\bBG(?:-[A-Z]+)+\b")
#: What stands for a part that varies.
VARIES = "…"


@cache
def source():
    """Return the source, in which a text that is written in several pieces is one."""
    texts = (path.read_text("utf-8") for path in sorted(Path(boinc_gahp.__path__[0]).rglob("*.py")))
    return re.sub(r"""["']\s*\n\s*[fr]{0,2}["']""", "", "\n".join(texts))


def situations():
    """Return the page's situations: their labels, and what stands below each."""
    parts = re.split(r"^\.\. _(trouble-[\w-]+):\n", PAGE.read_text("utf-8"), flags=re.M)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    last = list(found)[-1]
    found[last] = found[last].partition("\n.. _codes:\n")[0]
    return found


def entries():
    """Return the codes that the page's table has, each with the labels that it leads to."""
    table = PAGE.read_text("utf-8").partition("\n.. _codes:\n")[2]
    rows = re.findall(r"^   \* - ``\[(BG[-A-Z]+)\]``\n     - .*\n     - (:ref:`.*`)$", table, re.M)
    assert len(rows) == table.count("* - ``[BG-")
    assert len(dict(rows)) == len(rows), "a code stands there twice"
    return {code: re.findall(r"`(.+?)`", labels) for code, labels in rows}


def quoted():
    """Return what the page says that people see."""
    found = []
    for text in situations().values():
        seen = re.search(r"^You see\n((?: .*\n|\n)+)", text, re.M)
        assert seen is not None, text
        found += re.findall(r"``(.+?)``", seen[1], re.S)
    return [" ".join(each.split()) for each in found]


def test_each_class_of_errors_has_a_code_of_its_own():
    without = [each.__name__ for each in error_classes() if "code" not in vars(each)]
    assert without == []
    codes = [each.code for each in error_classes()]
    assert sorted(set(codes)) == sorted(codes)
    assert [code for code in codes if not CODE.fullmatch(code)] == []


def test_each_code_is_in_the_table_and_leads_to_a_situation():
    assert sorted(entries()) == sorted(each.code for each in error_classes())
    assert set(chain(*entries().values())) <= situations().keys()


def test_the_page_says_which_troubles_pass_by_themselves():
    [told] = re.findall(r"pass by themselves: (.*?) mostly\.", PAGE.read_text("utf-8"), re.S)
    passing = {each.code for each in error_classes() if each.passes}
    assert set(CODE.findall(told)) == passing


def test_no_document_has_a_code_that_no_class_has():
    known = {each.code for each in error_classes()}
    for path in [*ROOT.glob("docs/**/*.rst"), *ROOT.glob("*.rst"), *ROOT.glob("conf/**/*")]:
        if path.is_file():
            assert set(CODE.findall(path.read_text("utf-8"))) <= known, path


@pytest.mark.parametrize("text", quoted())
def test_what_the_page_quotes_stands_in_the_source(text):
    # Codes are put behind texts where these are shown.
    pieces = [piece.strip() for piece in re.sub(r" ?\[BG[-A-Z]+\]", "", text).split(VARIES)]
    missing = [piece for piece in pieces if piece not in source()]
    assert missing == []


def test_each_situation_tells_what_is_seen_why_and_what_to_do():
    for label, text in situations().items():
        for part in ("You see", "Why", "Do"):
            assert len(re.findall(rf"^{part}\n    \S", text, re.M)) == 1, (label, part)
