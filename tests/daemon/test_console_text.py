"""What the console says."""

from __future__ import annotations

import pytest

from boinc_gahp.daemon.console import display
from boinc_gahp.gahp.command import AsyncRequest
from boinc_gahp.gahp.commands import COMMANDS, parse_request


def said(line: str, values: list[str] | None, error: str = "") -> list[str]:
    """Return the lines that tell the result of a Request Line."""
    request = parse_request(line.encode())
    assert isinstance(request, AsyncRequest)
    number = request.request_id
    form = COMMANDS[request.command].form
    result = form.error(number, error) if values is None else form.success(number, values)
    told = display.result(request, result)
    assert told.style == ("bad" if values is None else "good")
    first, *rest = told.lines
    return [f"{told.head} {first}", *rest]


@pytest.mark.parametrize(
    ("line", "values", "told"),
    [
        pytest.param("BOINC_PING 7", [], ["BOINC_PING 7: ok, the project answers"], id="ping"),
        pytest.param(
            "BOINC_SUBMIT 3 sweep app 1 sweep.1 0 0",
            [],
            ["BOINC_SUBMIT 3: ok, 1 job in batch sweep"],
            id="submit",
        ),
        pytest.param(
            "BOINC_FETCH_OUTPUT 9 j /tmp/d err ALL 0",
            ["3", "12.5", "11"],
            [
                "BOINC_FETCH_OUTPUT 9: ok, exit status 3; 12.5 s elapsed, 11 s CPU",
                "  outputs in /tmp/d",
            ],
            id="fetch",
        ),
        pytest.param(
            "BOINC_ABORT_JOBS 4 a b", [], ["BOINC_ABORT_JOBS 4: ok, 2 jobs aborted"], id="abort"
        ),
        pytest.param(
            "BOINC_RETIRE_BATCH 5 b",
            [],
            ["BOINC_RETIRE_BATCH 5: ok, batch b is retired"],
            id="retire",
        ),
        pytest.param(
            "BOINC_SET_LEASE 6 b 1e300",
            [],
            ["BOINC_SET_LEASE 6: ok, batch b is kept until 1e300"],
            id="lease beyond any calendar",
        ),
        pytest.param(
            "BOINC_QUERY_BATCHES 5 0 2 a b",
            ["1795261323.469543", "2", "a.1", "DONE", "a.10", "UNSENT", "0"],
            [
                "BOINC_QUERY_BATCHES 5: ok, server_time 1795261323.469543",
                "  a: 2 jobs: 1 DONE, 1 UNSENT",
                "    a.1   DONE",
                "    a.10  UNSENT",
                "  b: 0 jobs",
            ],
            id="query",
        ),
        pytest.param(
            "BLAH_PING 2 boinc", [], ["BLAH_PING 2: ok, jobs can be accepted"], id="ping of a batch"
        ),
        pytest.param(
            'BLAH_JOB_SUBMIT 3 [ Cmd = "x" ]',
            ["boinc/a.1"],
            ["BLAH_JOB_SUBMIT 3: ok, the job is boinc/a.1"],
            id="job",
        ),
        pytest.param(
            "BLAH_JOB_STATUS 4 boinc/a.1",
            ["5", r'[ HoldReason = "bad; \"in\" = ]"; HoldReasonCode = 2302 ]'],
            [
                "BLAH_JOB_STATUS 4: ok, boinc/a.1 is held",
                r'  HoldReason = "bad; \"in\" = ]"',
                "  HoldReasonCode = 2302",
            ],
            id="job that is held",
        ),
        pytest.param(
            "BLAH_JOB_STATUS 4 boinc/a.1",
            ["1", "[ ]"],
            ["BLAH_JOB_STATUS 4: ok, boinc/a.1 is idle"],
            id="job without attributes",
        ),
        pytest.param(
            "BLAH_JOB_CANCEL 5 boinc/a.1",
            [],
            ["BLAH_JOB_CANCEL 5: ok, boinc/a.1 is cancelled"],
            id="job that is cancelled",
        ),
        pytest.param(
            "BLAH_JOB_REFRESH_PROXY 6 boinc/a.1",
            [],
            ["BLAH_JOB_REFRESH_PROXY 6: ok, there was nothing to do"],
            id="proxy",
        ),
    ],
)
def test_a_result_is_reported_in_words(line: str, values: list[str], told: list[str]) -> None:
    assert said(line, values) == told


def test_of_many_jobs_only_the_counts_are_reported() -> None:
    jobs = [word for i in range(1234) for word in (f"j{i}", "DONE" if i % 2 else "IN_PROGRESS")]
    assert said("BOINC_QUERY_BATCHES 5 0 1 a", ["1.5", "1234", *jobs]) == [
        "BOINC_QUERY_BATCHES 5: ok, server_time 1.5",
        "  a: 1,234 jobs: 617 DONE, 617 IN_PROGRESS",
    ]


def test_an_error_is_reported_in_its_own_words() -> None:
    assert said("BOINC_PING 2", None, "no route to host") == [
        "BOINC_PING 2: error: no route to host"
    ]


@pytest.mark.parametrize("command", ["BLAH_PING", "BLAH_JOB_STATUS", "BLAH_JOB_SUBMIT"])
def test_an_error_among_other_words_is_reported_alone(command: str) -> None:
    assert said(f"{command} 2 x", None, "no such job") == [f"{command} 2: error: no such job"]


def test_what_would_move_the_cursor_is_told_by_its_number() -> None:
    assert said("BOINC_PING 2", None, "a\x1b[2Jb\x07\udc80é") == [
        "BOINC_PING 2: error: a\\x1b[2Jb\\x07\\x80é"
    ]


def test_the_greeting_is_one_line_where_it_fits() -> None:
    greeting = display.greeting("1.2", "http://a/", "/log", 80)
    assert greeting == "boinc_gahp 1.2 | project http://a/ | log /log | type help"


def test_the_greeting_is_folded_between_its_parts_where_it_is_too_long() -> None:
    greeting = display.greeting("1.2", None, "/home/somebody/boinc_gahp.log", 80)
    assert greeting.splitlines() == [
        "boinc_gahp 1.2 | no project: BOINC_SELECT_PROJECT url authenticator",
        "log /home/somebody/boinc_gahp.log | type help",
    ]


def test_help_names_every_command_and_fits_80_columns() -> None:
    text = display.help_overview()
    assert all(name in text for name in COMMANDS)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_on_a_command_has_its_whole_syntax_and_fits_80_columns(name: str) -> None:
    told = display.help_on(name.lower(), 80)
    assert COMMANDS[name].syntax in " ".join(" ".join(told.lines).split())
    assert max(map(len, told.lines)) < 80


def test_help_finds_a_command_by_what_comes_after_boinc() -> None:
    assert display.help_on("ping", 80) == display.help_on("BOINC_PING", 80)


def test_help_on_what_is_no_command_says_so() -> None:
    told = display.help_on("sumbit", 80)
    assert told.style == "bad"
    assert told.lines == ['there is no command "sumbit"']


@pytest.mark.parametrize("width", [40, 80, 200])
def test_an_error_is_folded_between_words(width: int) -> None:
    text = "error: BOINC_SUBMIT: app is missing; its form is: " + " ".join(["rsc_fpops_est"] * 30)
    lines = display.folded(text, width).splitlines()
    assert " ".join(lines) == text
    assert max(map(len, lines)) <= width
