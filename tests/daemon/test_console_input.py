"""What the console keeps of what was typed."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.daemon.console.input import (
    KEPT_LINES,
    LONGEST,
    PrivateHistory,
    lines_of,
    secret_begins,
)
from boinc_gahp.gahp.lines import LineSplitter

if TYPE_CHECKING:
    from pathlib import Path


def run_of(path: Path, *typed: str) -> list[str]:
    """Type lines in a run of the console; return its history at the end, the oldest first."""
    history = PrivateHistory(path)
    for line in reversed(list(history.load_history_strings())):
        history.get_strings()
        history._loaded_strings.insert(0, line)
    for line in typed:
        history.append_string(line)
    return list(history.get_strings())


@pytest.mark.parametrize(
    "line",
    [
        "BOINC_SELECT_PROJECT http://a/ SECRET",
        "boinc_select_project http://a/ SECRET",
        "BOINC_SELECT_PROJECT http://a\\ b/ SECRET",
        "BOINC_SELECT_PROJET http://a/ SECRET",
        "SELECT_PROJECT http://a/ SECRET more",
        "BOINC_SELECT_PROJECT  SECRET",
        "  BOINC_SELECT_PROJECT http://a/ SECRET",
    ],
)
def test_an_authenticator_is_found_where_it_begins(line: str) -> None:
    begins = secret_begins(line)
    assert begins is not None
    assert line[begins:].startswith("SECRET")


@pytest.mark.parametrize("line", ["", "BOINC_PING 2", "BOINC_SELECT_PROJECT http://a/"])
def test_other_lines_have_none(line: str) -> None:
    assert secret_begins(line) is None


def test_history_is_kept_between_runs_in_the_order_of_typing(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"
    run_of(path, "BOINC_PING 2", "help boinc_ping")
    assert run_of(path, "BOINC_PING 3") == ["BOINC_PING 2", "help boinc_ping", "BOINC_PING 3"]


def test_history_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("BOINC_PING 1\n")
    path.chmod(0o644)
    run_of(path, "BOINC_PING 2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_authenticator_is_kept_in_the_file_or_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "history"
    kept = run_of(
        path, "BOINC_SELECT_PROJECT http://a/ SECRET", "BOINC_SELECT_PRJ http://a/ SECRET"
    )
    assert kept == ["BOINC_SELECT_PROJECT http://a/", "BOINC_SELECT_PRJ http://a/"]
    assert path.read_text() == "BOINC_SELECT_PROJECT http://a/\n"


@pytest.mark.parametrize(
    "line",
    [
        " BOINC_SELECT_PROJECT http://a/ SECRET",
        "BOINC_SELECT_PROJECT  http://a/ SECRET",
        "BOINC_SELECT_PROJECT SECRET http://a/",
        "BOINC_SELECT_PROJECT SECRET",
    ],
    ids=["blank before it", "two blanks", "arguments exchanged", "address forgotten"],
)
def test_no_authenticator_is_kept_of_a_line_that_is_wrong(tmp_path: Path, line: str) -> None:
    path = tmp_path / "history"
    kept = run_of(path, line)
    assert "SECRET" not in repr(kept)
    assert "SECRET" not in path.read_text()


def test_lines_that_are_no_commands_stay_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "history"
    assert run_of(path, "0123456789abcdef", "BOINC_PING 2") == ["0123456789abcdef", "BOINC_PING 2"]
    assert path.read_text() == "BOINC_PING 2\n"


def test_a_paste_of_several_lines_is_kept_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "history"
    run_of(path, "BOINC_PING 2\nBOINC_SELECT_PROJECT http://a/ SECRET\n\nBOINC_PING 3")
    assert path.read_text().splitlines() == [
        "BOINC_PING 2",
        "BOINC_SELECT_PROJECT http://a/",
        "BOINC_PING 3",
    ]


def test_repetitions_blank_lines_and_huge_lines_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "history"
    run_of(path, "BOINC_PING 2", "BOINC_PING 2", " ", "BOINC_PING " + "2" * LONGEST)
    assert path.read_text() == "BOINC_PING 2\n"


def test_a_long_history_is_shortened(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"BOINC_PING {i}\n" for i in range(2 * KEPT_LINES + 1)))
    assert len(run_of(path)) == KEPT_LINES
    assert len(path.read_text().splitlines()) == KEPT_LINES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["history"]


@pytest.mark.parametrize("place", ["directory/history", "link"])
def test_the_console_works_where_no_history_can_be_kept(tmp_path: Path, place: str) -> None:
    (tmp_path / "directory").touch()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert run_of(tmp_path / place, "BOINC_PING 2") == ["BOINC_PING 2"]
    assert not (tmp_path / "elsewhere").exists()


def test_text_is_cut_into_request_lines() -> None:
    splitter = LineSplitter()
    assert list(lines_of("A 1\nB\\\n2", splitter)) == [b"A 1", b"B\\\n2"]
    assert list(lines_of("  ", splitter)) == []
    assert list(lines_of("C\\", splitter)) == []
    assert splitter.incomplete
    assert list(lines_of("3", splitter)) == [b"C\\\n3"]
