import re

import pytest
from bs4 import BeautifulSoup

from tests.documents.conftest import ROOT

#: The build waits for nothing but the processor, which may be busy.
pytestmark = pytest.mark.timeout(600)

#: What a browser fetches by itself when it shows a page.
FETCHED = (
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
)
FOREIGN = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)


def test_pages_and_manual_pages_are_built_without_a_warning(built):
    assert (built.run.returncode, built.run.stderr) == (0, "")
    assert [line.rpartition("/")[2] for line in built.run.stdout.splitlines()] == [
        "index.html",
        "boinc_gahp.1",
        "boinc_gahp.toml.5",
    ]


def test_no_page_makes_a_browser_ask_another_host(built):
    assert built.pages
    found = [
        (path.name, tag, tag_found[attribute])
        for path in built.pages
        for tag, attribute in FETCHED
        for tag_found in BeautifulSoup(path.read_text("utf-8"), "html.parser").find_all(tag)
        if FOREIGN.match(str(tag_found.get(attribute, "")))
        and "canonical" not in (tag_found.get("rel") or ())
    ]
    assert found == []


def test_no_style_sheet_makes_a_browser_ask_another_host(built):
    sheets = sorted((built.directory / "html").rglob("*.css"))
    assert sheets
    for sheet in sheets:
        asked = re.findall(
            r"(?:url\(\s*['\"]?|@import\s+['\"])([^'\")]+)", sheet.read_text("utf-8", "replace")
        )
        assert [address for address in asked if FOREIGN.match(address)] == [], sheet.name


def test_the_pages_for_users_do_not_name_the_sources_of_facts(built):
    """Docstrings cite the pages of internals; who reads the reference has no use for it."""
    sources = "|".join(path.stem for path in (ROOT / "docs/internals").glob("*.rst"))
    internals = built.directory / "html/internals"
    for path in built.pages:
        if path.is_relative_to(internals):
            continue
        text = BeautifulSoup(path.read_text("utf-8"), "html.parser").get_text()
        assert re.findall(rf"(?:{sources})\.rst\b", text) == [], path.name
