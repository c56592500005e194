"""What the console says."""

import pytest

from boinc_gahp.daemon import console
from boinc_gahp.daemon._engine import FinishedRequest
from boinc_gahp.gahp.commands import COMMANDS, parse_request


def told(line, *values):
    """Return the lines that tell the result of a Request Line."""
    request = parse_request(line.encode())
    return console.result_lines(request, values)


@pytest.mark.parametrize(
    ("line", "values", "lines"),
    [
        pytest.param("BOINC_PING 7", [], [], id="no values"),
        pytest.param(
            "BOINC_FETCH_OUTPUT 9 j /tmp/d err ALL 0",
            ["3", "12.5", "11"],
            ["exit_status: 3", "elapsed_time: 12.5", "cpu_time: 11"],
            id="fetch",
        ),
        pytest.param(
            "BOINC_QUERY_BATCHES 5 0 2 a b",
            ["1795261323.469543", "2", "a.1", "DONE", "a.10", "UNSENT", "0"],
            [
                "server_time: 1795261323.469543",
                "a: 2 jobs: 1 DONE, 1 UNSENT",
                "  a.1   DONE",
                "  a.10  UNSENT",
                "b: 0 jobs",
            ],
            id="query",
        ),
        pytest.param(
            'BLAH_JOB_SUBMIT 3 [ Cmd = "x" ]', ["boinc/a.1"], ["job_id: boinc/a.1"], id="job"
        ),
        pytest.param(
            "BLAH_JOB_STATUS 4 boinc/a.1",
            ["5", '[ HoldReason = "bad" ]'],
            ["status: 5 (held)", 'ad: [ HoldReason = "bad" ]'],
            id="status",
        ),
    ],
)
def test_a_result_is_told_with_the_names_of_its_values(line, values, lines):
    assert told(line, *values) == lines


def test_of_many_jobs_only_the_counts_are_told():
    jobs = [word for i in range(1234) for word in (f"j{i}", "DONE" if i % 2 else "IN_PROGRESS")]
    assert told("BOINC_QUERY_BATCHES 5 0 1 a", "1.5", "1234", *jobs) == [
        "server_time: 1.5",
        "a: 1,234 jobs: 617 DONE, 617 IN_PROGRESS",
    ]


def test_what_would_move_the_cursor_is_told_by_its_number(capsys):
    request = parse_request(b"BOINC_PING 2")
    console.show(FinishedRequest(request, b"", error="a\x1b[2Jb\x07\udc80\xe9"))
    assert capsys.readouterr().out.strip() == "BOINC_PING 2: error: a\\x1b[2Jb\\x07\\x80\xe9"


def test_help_names_every_command_and_fits_80_columns():
    text = console.help_overview()
    assert all(name in text for name in COMMANDS)
    assert max(map(len, text.splitlines())) < 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_on_a_command_has_its_whole_syntax_and_fits_80_columns(name):
    text = console.help_on(name.lower(), 79)
    assert COMMANDS[name].syntax in " ".join(text.split())
    assert max(map(len, text.splitlines())) < 80


def test_help_finds_a_command_by_what_comes_after_boinc():
    assert console.help_on("ping", 80) == console.help_on("BOINC_PING", 80)


def test_there_is_no_help_on_what_is_no_command():
    assert console.help_on("sumbit", 80) is None


@pytest.mark.parametrize("width", [40, 80, 200])
def test_an_error_is_folded_between_words(width):
    text = "error: BOINC_SUBMIT: app is missing; its form is: " + " ".join(["rsc_fpops_est"] * 30)
    lines = console.folded(text, width).splitlines()
    assert " ".join(lines) == text
    assert max(map(len, lines)) <= width
