"""What the console keeps of what was typed."""

import stat

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from boinc_gahp.daemon._console_input import (
    LONGEST,
    CommandCompleter,
    PrivateHistory,
    secret_begins,
)


def run_of(path, *typed):
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
        "BOINC_SELECT_PROJET http://a/ SECRET",
        "SELECT_PROJECT HTTP://a/ SECRET more",
        "BOINC_SELECT_PROJECT  SECRET",
        "BOINC_SELECT_PROJECT SECRET http://a/",
        "  BOINC_SELECT_PROJECT http://a/ SECRET",
    ],
)
def test_an_authenticator_is_found_where_it_begins(line):
    begins = secret_begins(line)
    assert line[begins:].startswith("SECRET")


@pytest.mark.parametrize(
    "line", ["", "BOINC_PING 2", "help select_project", "BOINC_SELECT_PROJECT http://a/"]
)
def test_other_lines_have_none(line):
    assert secret_begins(line) is None


def test_history_is_kept_between_runs_in_the_order_of_typing(tmp_path):
    path = tmp_path / "state" / "history"
    run_of(path, "BOINC_PING 2", "help boinc_ping")
    assert run_of(path, "BOINC_PING 3") == ["BOINC_PING 2", "help boinc_ping", "BOINC_PING 3"]


def test_history_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "history"
    path.write_text("BOINC_PING 1\n")
    path.chmod(0o644)
    run_of(path, "BOINC_PING 2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_authenticator_is_kept_in_the_file_or_in_memory(tmp_path):
    path = tmp_path / "history"
    kept = run_of(
        path, "BOINC_SELECT_PROJECT http://a/ SECRET", "BOINC_SELECT_PRJ http://a/ SECRET"
    )
    assert kept == ["BOINC_SELECT_PROJECT http://a/", "BOINC_SELECT_PRJ http://a/"]
    assert path.read_text() == "BOINC_SELECT_PROJECT http://a/\n"


def test_lines_that_are_no_commands_stay_in_memory(tmp_path):
    path = tmp_path / "history"
    assert run_of(path, "0123456789abcdef", "BOINC_PING 2") == ["0123456789abcdef", "BOINC_PING 2"]
    assert path.read_text() == "BOINC_PING 2\n"


def test_a_paste_of_several_lines_is_kept_line_by_line(tmp_path):
    path = tmp_path / "history"
    run_of(path, "BOINC_PING 2\nBOINC_SELECT_PROJECT http://a/ SECRET\n\nBOINC_PING 3")
    assert path.read_text().splitlines() == [
        "BOINC_PING 2",
        "BOINC_SELECT_PROJECT http://a/",
        "BOINC_PING 3",
    ]


def test_repetitions_blank_lines_and_huge_lines_are_not_kept(tmp_path):
    path = tmp_path / "history"
    run_of(path, "BOINC_PING 2", "BOINC_PING 2", " ", "BOINC_PING " + "2" * LONGEST)
    assert path.read_text() == "BOINC_PING 2\n"


@pytest.mark.parametrize("place", ["directory/history", "link"])
def test_the_console_works_where_no_history_can_be_kept(tmp_path, place):
    (tmp_path / "directory").touch()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert run_of(tmp_path / place, "BOINC_PING 2") == ["BOINC_PING 2"]
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        pytest.param("boinc_pi", ["BOINC_PING"], id="small letters"),
        pytest.param("PING", ["BLAH_PING", "BOINC_PING"], id="without its beginning"),
        pytest.param("CANC", ["BLAH_JOB_CANCEL"], id="without BLAH_JOB_"),
        pytest.param("he", ["HELP"], id="help"),
        pytest.param("help boinc_a", ["help BOINC_ABORT_JOBS"], id="after help"),
        pytest.param("help PING ", [], id="nothing after help and a command"),
        pytest.param("BOINC_PING ", [], id="no arguments"),
        pytest.param("NOTHING", [], id="unknown"),
    ],
)
def test_names_of_commands_are_completed(text, completed):
    found = CommandCompleter().get_completions(Document(text), CompleteEvent())
    assert [text[: len(text) + one.start_position] + one.text for one in found] == completed
