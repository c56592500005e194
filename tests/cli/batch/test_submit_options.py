"""Slips on command lines, and placeholders."""

from __future__ import annotations

from pathlib import PurePath

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.cli.batch.placeholders import Filling, WrongPattern, check
from boinc_gahp.cli.main import main


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["batch", "submit", ""], "argument APP: it is empty"),
        (["batch", "submit", "uppercase", "--rows", ""], "argument --rows: it is empty"),
        (["batch", "submit", "uppercase", "--count", "1000001"], "1,000,001 jobs are too many"),
        (["batch", "submit", "uppercase", "--lease", "999999999999w"], "longer than a hundred"),
        (["batch", "submit", "uppercase", "--priority", "99999999999"], "or is too large for a"),
        (["template", "check", ""], "argument FILE: it is empty"),
        (["batch", "fetch", "12", ""], "argument DIR: it is empty"),
        (["batch", "fetch", "12", "--zip", ""], "argument --zip: it is empty"),
        (["batch", "list", "--project", ""], "argument --project: it is empty"),
        (["batch", "list", "--config", ""], "argument --config: it is empty"),
        (["--config", "", "batch", "list"], "the path after --config is empty"),
    ],
)
def test_an_empty_variable_or_a_slip_is_reported_before_anything_is_begun(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(words)
    except SystemExit as leave:
        status = int(leave.code or 0)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert reason in err


@given(st.text())
def test_doubled_braces_are_braces_and_nothing_else_changes(text: str) -> None:
    pattern = text.replace("{", "{{").replace("}", "}}")
    check(pattern, with_file=False)
    assert Filling(5)(pattern) == text


@given(st.integers(0, 10**6), st.text(min_size=1), st.integers(0, 20))
def test_placeholders_are_those_of_the_job(index: int, path: str, width: int) -> None:
    pattern = f"{{index}}|{{index:{width}}}|{{path}}|{{name}}|{{stem}}"
    check(pattern, with_file=True)
    pure = PurePath(path)
    expected = "|".join((str(index), str(index).zfill(width), path, pure.name, pure.stem))
    assert Filling(index, path)(pattern) == expected


@given(st.text(st.sampled_from("{}indexpath:3 ")))
def test_any_pattern_is_filled_in_or_refused(pattern: str) -> None:
    try:
        check(pattern, with_file=True)
    except WrongPattern:
        return
    Filling(1, "a/b.c")(pattern)
