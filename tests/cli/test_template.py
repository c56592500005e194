import re

import pytest

from tests.cli.conftest import InProcess
from tests.templates.good import INPUT, OUTPUT

#: A template with a warning in line 2 and an error in line 10.
BROKEN = INPUT.replace("        <no_delete/>\n", "        <no_delet/>\n").replace("1e12", "much")


@pytest.fixture
def check(capsys):
    return InProcess(capsys, "template", "check")


@pytest.mark.processes
def test_findings_are_lines_that_editors_understand(run, home):
    (home / "good").write_text(INPUT + OUTPUT)
    (home / "bad").write_text(BROKEN)
    done = run("template", "check", "good", "bad")
    assert (done.returncode, done.stderr) == (1, "")
    *findings, counts = done.stdout.splitlines()
    assert counts == "2 files: 1 error, 1 warning"
    assert [re.match(r"bad:(\d+): (error|warning): .+ \[([a-z-]+)\]$", f) for f in findings]
    assert re.findall(r"^bad:(\d+): (\w+): .* \[(.*)\]$", done.stdout, re.MULTILINE) == [
        ("2", "warning", "no-delete-input"),
        ("10", "error", "bad-number"),
    ]


@pytest.mark.processes
def test_standard_input_is_checked(run):
    done = run("template", "check", "-", stdin=INPUT.replace("in<", "in</"))
    assert done.returncode == 1
    assert done.stdout.startswith("<stdin>:7: error: ")
    assert run("template", "check", "-", stdin=INPUT).returncode == 0


@pytest.mark.parametrize(
    ("text", "arguments", "status"),
    [
        (INPUT, [], 0),
        (INPUT, ["--strict"], 0),
        (INPUT.replace("<no_delete/>", "<sticky/>"), [], 0),
        (INPUT.replace("<no_delete/>", "<sticky/>"), ["--strict"], 1),
        (BROKEN, [], 1),
    ],
    ids=["clean", "clean-strict", "warning", "warning-strict", "error"],
)
def test_the_exit_status_tells_what_was_found(home, check, text, arguments, status):
    (home / "template").write_text(text)
    check.prints(*arguments, "template", status=status)


def test_what_cannot_be_read_is_reported_and_the_rest_checked(home, check):
    (home / "good").write_text(INPUT)
    (home / "templates").mkdir()
    status, out, err = check("templates", "absent", "a\0b", "good")
    assert status == 2
    assert out == "1 file: 0 errors, 0 warnings\n"
    directory, absent, odd = err.splitlines()
    assert "templates is a directory: expected files; name those in it" in directory
    assert "'absent' cannot be read: No such file" in absent
    assert r"'a\x00b' cannot be read" in odd


@pytest.mark.parametrize(
    "data",
    [b"\x89PNG\r\n\x1a\n\0\0\0", b"\xff\xfe<\0a\0", b"\0" * 100_000, b"\n" * 5_000_000],
    ids=["picture", "utf-16", "zeros", "huge"],
)
def test_what_is_no_template_is_one_error(home, check, data):
    (home / "odd").write_bytes(data)
    assert check.prints("odd", status=1).endswith("1 file: 1 error, 0 warnings\n")
