"""Which argument is being typed, and what is offered for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from boinc_gahp.daemon.console.completion import (
    OFFERED,
    CompletionNames,
    LineCompleter,
    expected,
    hint,
    last_word,
    typed_words,
)
from boinc_gahp.gahp import words
from boinc_gahp.gahp.command import AsyncRequest
from boinc_gahp.gahp.commands import COMMANDS, parse_request

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1/test/"


def note(names: CompletionNames, line: str, *values: str) -> None:
    """Have names learned from a Request Line and its result."""
    request = parse_request(line.encode())
    assert isinstance(request, AsyncRequest)
    names.note_request(URL, request)
    form = COMMANDS[request.command].form
    names.note_result(URL, request, form.success(request.request_id, values))


@pytest.fixture
def names() -> CompletionNames:
    names = CompletionNames(["https://boinc.example.edu/test/"])
    names.select(URL)
    note(names, "BOINC_SUBMIT 3 sweep uppercase 2 sweep.1 0 0 sweep\\ two 0 0")
    note(names, "BOINC_QUERY_BATCHES 8 0 2 b1 b2", "17.5", "0", "2", "b2.1", "DONE", "b2.2", "DONE")
    note(names, "BOINC_FETCH_OUTPUT 5 fetched /d err ALL 0", "0", "1", "1")
    note(names, "BOINC_ABORT_JOBS 6 aborted")
    note(names, "BOINC_RETIRE_BATCH 7 retired")
    note(names, "BLAH_JOB_SUBMIT 3 []", "boinc/a.1")
    note(names, "BLAH_JOB_CANCEL 4 boinc/a.2")
    return names


def offered(names: CompletionNames, text: str) -> list[str]:
    """Return the lines that completions make of ``text``."""
    found = LineCompleter(names).get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + one.start_position] + one.text for one in found]


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        pytest.param("boinc_pi", ["BOINC_PING"], id="command in small letters"),
        pytest.param("PING", ["BOINC_PING", "BLAH_PING"], id="command without its beginning"),
        pytest.param("CANC", ["BLAH_JOB_CANCEL"], id="command without BLAH_JOB_"),
        pytest.param("BLAH_JOB_SUBMIT 9 ", ["BLAH_JOB_SUBMIT 9 ["], id="an ad begins"),
        pytest.param("BLAH_JOB_SUBMIT 9 [out", ["BLAH_JOB_SUBMIT 9 [Out="], id="an attribute"),
        pytest.param(
            'BLAH_JOB_SUBMIT 9 [Cmd="a b;"; Jo',
            ['BLAH_JOB_SUBMIT 9 [Cmd="a b;"; JobDirectory='],
            id="an attribute after others",
        ),
        pytest.param('BLAH_JOB_SUBMIT 9 [Cmd="[Ou', [], id="no attribute in a string"),
        pytest.param('BLAH_JOB_SUBMIT 9 [Cmd="a"; Out="o', [], id="no attribute in a value"),
        pytest.param(
            "BLAH_JOB_STATUS 9 b",
            ["BLAH_JOB_STATUS 9 boinc/a.1", "BLAH_JOB_STATUS 9 boinc/a.2"],
            id="id of a job of HTCondor's",
        ),
        pytest.param("he", ["HELP"], id="help"),
        pytest.param("help boinc_a", ["help BOINC_ABORT_JOBS"], id="command after help"),
        pytest.param("help PING ", [], id="nothing after help and a command"),
        pytest.param("BOINC_PING ", ["BOINC_PING 9"], id="next request id"),
        pytest.param("BOINC_RETIRE_BATCH 9 r", ["BOINC_RETIRE_BATCH 9 retired"], id="batch"),
        pytest.param(
            "BOINC_QUERY_BATCHES 9 0 2 b1 b",
            ["BOINC_QUERY_BATCHES 9 0 2 b1 b1", "BOINC_QUERY_BATCHES 9 0 2 b1 b2"],
            id="second batch of a count",
        ),
        pytest.param("BOINC_QUERY_BATCHES 9 0 1 b1 b", [], id="nothing past the count"),
        pytest.param("BOINC_QUERY_BATCHES 9 ", ["BOINC_QUERY_BATCHES 9 17.5"], id="server_time"),
        pytest.param("BOINC_FETCH_OUTPUT 9 f", ["BOINC_FETCH_OUTPUT 9 fetched"], id="job"),
        pytest.param(
            "BOINC_ABORT_JOBS 9 b2.1 a", ["BOINC_ABORT_JOBS 9 b2.1 aborted"], id="one job of many"
        ),
        pytest.param(
            "BOINC_ABORT_JOBS 9 sweep\\ ",
            ["BOINC_ABORT_JOBS 9 sweep\\ two"],
            id="name with a space",
        ),
        pytest.param(
            "BOINC_ABORT_JOBS 9 sweep\\",
            ["BOINC_ABORT_JOBS 9 sweep\\ two", "BOINC_ABORT_JOBS 9 sweep.1"],
            id="lone backslash",
        ),
        pytest.param("BOINC_SUBMIT 9 b u", ["BOINC_SUBMIT 9 b uppercase"], id="app"),
        pytest.param(
            "BOINC_FETCH_OUTPUT 9 j d e s", ["BOINC_FETCH_OUTPUT 9 j d e SOME"], id="choice"
        ),
        pytest.param(
            "BOINC_SELECT_PROJECT https",
            ["BOINC_SELECT_PROJECT https://boinc.example.edu/test/"],
            id="url from the settings",
        ),
        pytest.param("BOINC_SELECT_PROJECT http://x ", [], id="no authenticator"),
        pytest.param("BOINC_SUBMIT 9 b a x", [], id="count"),
        pytest.param("NOTHING ", [], id="unknown command"),
        pytest.param("BOINC_SUBMIT 9 b a nonsense ", [], id="wrong count"),
    ],
)
def test_arguments_are_completed(names: CompletionNames, text: str, completed: list[str]) -> None:
    assert sorted(offered(names, text)) == sorted(completed)


def test_a_lease_of_a_day_is_offered(names: CompletionNames) -> None:
    (line,) = offered(names, "BOINC_SET_LEASE 9 b ")
    assert int(line.split()[-1]) == pytest.approx(time.time() + 86400, abs=60)


def test_paths_are_completed_with_their_spaces_escaped(
    names: CompletionNames, tmp_path: Path
) -> None:
    (tmp_path / "a dir").mkdir()
    (tmp_path / "a file").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "a\x1bb").touch()
    start = f"BOINC_SUBMIT 9 b app 1 j 0 1 {tmp_path}/"
    assert offered(names, start) == [start + "a\\ dir/", start + "a\\ file"]
    assert offered(names, f"{start}nowhere/x") == []


def test_names_of_one_project_are_not_offered_for_another(names: CompletionNames) -> None:
    names.select("http://127.0.0.1/other/")
    assert offered(names, "BOINC_RETIRE_BATCH 9 ") == []
    names.select(URL)
    assert "BOINC_RETIRE_BATCH 9 sweep" in offered(names, "BOINC_RETIRE_BATCH 9 ")


def test_of_very_many_names_some_are_offered_at_once(names: CompletionNames) -> None:
    names.learn(URL, jobs=(f"big#{i}" for i in range(100_000)))
    assert len(offered(names, "BOINC_ABORT_JOBS 9 big#")) == OFFERED
    assert offered(names, "BOINC_ABORT_JOBS 9 big#9999") == [
        f"BOINC_ABORT_JOBS 9 big#9999{tail}" for tail in ["", *map(str, range(10))]
    ]


def test_nothing_is_offered_for_a_line_that_was_pasted(names: CompletionNames) -> None:
    assert offered(names, "BOINC_ABORT_JOBS 9 " + "x " * 20_000) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("BOINC_PI", ""),
        ("BOINC_PING ", "id: your number for this request; its result begins with it"),
        ("BOINC_SUBMIT 9 b app 1 j 2 a ", "arg: a command line argument of the job"),
        ("BOINC_SUBMIT 9 b app ", "njobs: number of jobs"),
        ("BOINC_PING 2 ", ""),
    ],
    ids=["command", "field", "inside two counts", "count", "past the end"],
)
def test_the_toolbar_tells_what_is_being_typed(text: str, told: str) -> None:
    assert hint(text) == told


@given(st.lists(st.text() | st.text("\\ ab"), min_size=1))
@example(["\\", "0"])
def test_a_line_being_typed_is_split_as_a_whole_line_is(arguments: list[str]) -> None:
    try:
        line = " ".join(map(words.escape, arguments))
        arguments = words.split(words.encode(line))
    except UnicodeEncodeError:
        return
    assert typed_words(line) == arguments[:-1]
    assert words.unescape(last_word(line)) == arguments[-1]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_no_arguments_are_too_odd_to_be_looked_at(arguments: list[str]) -> None:
    expected(["BOINC_SUBMIT", *arguments])
    hint(" ".join(arguments))
