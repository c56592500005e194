"""Slips on command lines."""

import pytest

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
def test_an_empty_variable_or_a_slip_is_reported_before_anything_is_begun(words, reason, capsys):
    try:
        status = main(words)
    except SystemExit as leave:
        status = int(leave.code or 0)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert reason in err
