"""How the projects are asked: several, some of them down, for many tabs, and only for these."""

import json
import threading

import pytest

from boinc_gahp.api.watching import Poll
from boinc_gahp.localproject.states import ErrorMask
from boinc_gahp.page import board
from boinc_gahp.page.board import Kept, Source
from boinc_gahp.page.views import PageServer
from tests.helpers import wait_for
from tests.page.visitor import Visitor, words


@pytest.fixture
def settings(site, tmp_path):
    """Settings with the project as ``here``, and as ``away`` one that is down."""
    [row] = site.core.db.connection().execute(
        "SELECT authenticator FROM user WHERE name = 'submitter'"
    )
    text = "".join(
        f"[projects.{name}]\nurl = {json.dumps(url)}\nauthenticator = {json.dumps(row[0])}\n"
        for name, url in (("here", site.core.url), ("away", "http://127.0.0.1:9/test/"))
    )
    path = tmp_path / "several.toml"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def several(site, settings, monkeypatch):
    """Somebody at the page of both."""
    monkeypatch.setattr(board, "_LIST_TIMEOUT", 0.5)
    monkeypatch.setattr(board, "_TIMEOUT", 0.5)
    sources = [Source(name, name, settings) for name in ("here", "away", "nowhere")]
    with PageServer(lambda: sources) as page, Visitor(page.address, site.core) as visitor:
        yield visitor


def test_projects_are_one_list_and_one_that_is_down_is_a_line(site, several):
    several.batch("mine")
    page = several.page()
    assert words(page.get_element_by_id("batch-0-1")).startswith("mine here uppercase running")
    told = words(page)
    assert "away cannot be asked now: " in told
    assert "nowhere cannot be asked now: the settings have no project" in told
    assert "boinc_gahp batch wait 1 --project here --config" in several.text("0/1")
    assert several.get("1/1").status_code == 503
    assert several.page().findtext(".//title") == "Batches · boinc_gahp"


def test_what_was_known_of_a_project_is_shown_while_it_is_down(site, several):
    several.batch("mine", 2)
    several.text("0/1")
    site.stop()
    for path in ("", "0/1"):
        told = several.text(path)
        assert "here cannot be asked now: " in told
        assert "This is its state of " in told
        assert "mine" in told
    assert "2 waiting" in several.text("0/1")


def test_all_tabs_together_ask_as_one_and_with_pauses(site, visitor, monkeypatch):
    monkeypatch.setattr(board, "_POLL", Poll(3600, 3600))
    visitor.batch("b")
    with Visitor(visitor.address) as other:
        for _ in range(3):
            for each in (visitor, other):
                assert "b uppercase" in each.text()
    assert site.asked.count("query_batches") == 1


def test_jobs_are_asked_for_again_only_when_the_batch_has_changed(bench, site, visitor):
    visitor.batch("b", 3)
    bench.set("workunit", "id = 1", error_mask=ErrorMask.CANCELLED, canonical_resultid=1)
    for _ in range(2):
        assert "1 done 2 waiting" in visitor.text("0/1")
    before = site.asked.count("query_batch")
    for path in ("0/1", "0/1?page=2", "0/1?q=b_1", "0/1?state=done"):
        visitor.text(path)
    assert site.asked.count("query_batch") == before
    bench.set("workunit", "id = 2", error_mask=ErrorMask.CANCELLED)
    assert "1 done 1 failed 1 waiting" in visitor.text("0/1")
    assert site.asked.count("query_batch") > before


def test_nobody_asks_when_no_tab_is_open(site, visitor):
    visitor.text()
    wait_for(lambda: not [t for t in threading.enumerate() if t.name == "page"], "the answer")


def test_a_project_that_hangs_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr(board, "FIRST", 0.01)
    gate = threading.Event()
    kept = Kept(lambda: gate.wait(60))
    assert kept.look() is None
    gate.set()
    wait_for(lambda: kept.look() is True, "the answer")


def test_looks_at_outputs_leave_nothing_behind(bench, visitor, site, monkeypatch, tmp_path):
    monkeypatch.setattr(board.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(board, "_FETCHED", 2)
    visitor.batch("b", 4)
    bench.transition()
    bench.compute(b"1", b"2", b"3", b"4")
    bench.settle()
    for job in range(1, 5):
        assert f"out 1 byte {job}" in visitor.text(f"0/1/{job}/outputs")
    assert len(list(tmp_path.glob("boinc_gahp-*"))) == 2


def test_large_outputs_are_fetched_on_a_terminal(bench, visitor, monkeypatch):
    monkeypatch.setattr(board, "_MOST_BYTES", 2)
    visitor.batch("b")
    bench.transition()
    bench.compute(b"123")
    bench.settle()
    assert "its outputs have 3 bytes: fetch them on a terminal" in visitor.text("0/1/1/outputs")
