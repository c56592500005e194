import re

import pytest

from boinc_gahp.cli.main import main
from tests.cli.conftest import InProcess
from tests.helpers import command
from tests.templates.good import INPUT, OUTPUT

#: A template with a warning in line 2 and an error in line 10.
BROKEN = INPUT.replace("        <no_delete/>\n", "        <no_delet/>\n").replace("1e12", "much")


def check(*arguments):
    return main(["template", "check", *arguments])


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
def test_the_exit_status_tells_what_was_found(home, text, arguments, status):
    (home / "template").write_text(text)
    assert check(*arguments, "template") == status


def test_what_cannot_be_read_is_reported_and_the_rest_checked(home, capsys):
    (home / "good").write_text(INPUT)
    (home / "templates").mkdir()
    words = ("templates", "absent", "a\0b", "good")
    status, out, err = command(capsys, "template", "check", *words)
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
def test_what_is_no_template_is_one_error(home, capsys, data):
    (home / "odd").write_bytes(data)
    assert check("odd") == 1
    assert capsys.readouterr().out.endswith("1 file: 1 error, 0 warnings\n")


def test_line_ends_of_windows_do_not_matter(home):
    (home / "template").write_bytes(INPUT.replace("\n", "\r\n").encode())
    assert check("--strict", "template") == 0


def test_an_option_before_the_action_gets_status_2(capsys):
    said = "--strict comes before the action"
    assert said in InProcess(capsys, "template").refuses("--strict", "check", "x", status=2)
