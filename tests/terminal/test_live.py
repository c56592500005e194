"""Live progress: drawn on a terminal, lines now and then elsewhere."""

import io
import re

import pytest

from boinc_gahp.terminal import live
from boinc_gahp.terminal.live import Live, Work
from tests.helpers import wait_for
from tests.terminal.screen import Terminal


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with Terminal() as made:
        yield made


def test_elsewhere_there_is_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(live, "PAUSE", 0.0)
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    with Work() as work:
        work.show("staging", 1, 3)
        work.show("reading", 5, 0, "5 kB")
    assert out.getvalue() == "staging 33%: 1 of 3\nreading: 5 kB\n"
    monkeypatch.setattr(live, "PAUSE", 3600.0)
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    with Work() as work:
        for number in range(100):
            work.show("staging", number, 100)
    assert out.getvalue() == ""


def test_a_terminal_shows_a_bar_and_what_is_reported_stays_above_it(terminal, monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal.stream)
    with Work() as work:
        work.show("staging", 1, 4)
        wait_for(lambda: "25%  1 of 4" in terminal.plain, "the progress")
        assert re.search(r"staging  ━{7}╸ +25%", terminal.plain)
        live.remark("a file [red]&<i> 批\x1b[31m")
        work.show("staging", 4, 4)
    terminal.stream.flush()
    wait_for(lambda: "100%" in terminal.text, "the end")
    assert "a file [red]&<i> 批\n" in terminal.plain
    assert "\x1b[2K" in terminal.text.rpartition("100%")[2]


def test_quiet_work_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal.stream)
    with Work(quiet=True) as work:
        work.show("staging", 1, 4)
    terminal.stream.flush()
    assert terminal.text == ""


def test_lines_stay_if_they_are_to_be_kept(terminal):
    with Live(lambda width: [f"so wide: {width}", "批" * 100], stream=terminal.stream, keep=True):
        pass
    wait_for(lambda: terminal.text.endswith("\x1b[?25h"), "the cursor")
    last = terminal.plain.splitlines()
    assert last[-2:] == ["so wide: 80", "批" * 40]


def test_a_dumb_terminal_gets_lines(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(live, "PAUSE", 0.0)
    monkeypatch.setattr("sys.stderr", terminal.stream)
    with Work() as work:
        work.show("staging", 1, 4)
    wait_for(lambda: terminal.text == "staging 25%: 1 of 4\n", "the line")
