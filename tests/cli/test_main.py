import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from boinc_gahp import __version__
from boinc_gahp.cli.main import main
from tests.cli.conftest import COMMAND, InProcess, ended
from tests.daemon.process import Daemon
from tests.helpers import ran, wait_for


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("chek", "there is no command 'chek'; did you mean check? boinc_gahp --help lists"),
        ("--conf", "there is no option --conf; did you mean --config? "),
        ("--qqq", "there is no option --qqq; boinc_gahp --help lists"),
        ("--config", "--config needs the path"),
        ("--trust-config check", "--trust-config needs a settings file beside it"),
        ("--config x BOINC_PING", "there is no command 'BOINC_PING'"),
        ("submit", "; type: boinc_gahp batch submit; "),
        ("submit a --each *.txt", "; type: boinc_gahp batch submit a --each '*.txt'; "),
        ("status", "; type: boinc_gahp ledger status, or boinc_gahp local-project status; "),
        ("add-app p", "; type: boinc_gahp local-project add-app p; "),
        ("sumbit", "; did you mean boinc_gahp batch submit? "),
        ("help sumbit", "; did you mean boinc_gahp batch submit? "),
    ],
)
def test_a_wrong_command_line_gets_one_line_and_status_2(arguments, words, capsys):
    err = InProcess(capsys).refuses(*arguments.split(), status=2)
    assert words in err
    assert err.count("\n") == 1


def test_help_and_version_are_words_too(capsys):
    assert InProcess(capsys).prints("version") == f"boinc_gahp {__version__}\n"
    assert InProcess(capsys).prints("help") == InProcess(capsys).prints("--help")
    assert "usage: boinc_gahp batch submit" in InProcess(capsys).prints("help", "batch", "submit")


def first_result(arguments, environ):
    """Return what the daemon answers to a BOINC_PING, and what it says on stderr."""
    with Daemon([COMMAND, *arguments], environ={**os.environ, **environ}) as daemon:
        assert daemon.line().startswith(b"$GahpVersion: ")
        assert daemon.ask(b"BOINC_PING 1") == b"S"
        [result] = daemon.await_results(1)
        daemon.end_input()
        status, _, errors = daemon.end()
    assert status == 0
    return result.decode(), errors.decode()


@pytest.mark.processes
@pytest.mark.parametrize("words", ["--config mine.toml", "--config=mine.toml", ""])
def test_a_settings_file_can_be_named(home, words):
    path = home / "mine.toml"
    path.write_text("[limits]\npending_requests = 0\n")
    # The file is wrong, so that it shows whether it was read.
    result, errors = first_result(words.split(), {} if words else {"BOINC_GAHP_CONFIG": str(path)})
    assert "pending_requests\\ in\\ [limits]\\ is\\ 0" in result
    assert "pending_requests in [limits] is 0" in errors


@pytest.mark.processes
def test_wrong_settings_are_one_line_on_stderr_and_keep_no_daemon_from_starting(home):
    path = home / ".config/boinc_gahp/boinc_gahp.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[project]\nurll = 'x'")
    result, errors = first_result([], {})
    assert str(path) in result
    assert errors.startswith(f"boinc_gahp: {path}")
    assert errors.count("\n") == 1


@pytest.mark.processes
def test_the_daemon_needs_no_environment_but_home(home):
    with subprocess.Popen(
        [COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"HOME": str(home)},
    ) as process:
        wait_for((home / ".local/state/boinc_gahp/boinc_gahp.log").exists, "the log has begun")
        out, err = process.communicate(b"QUIT\r\n", timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert out.endswith(b"S\n")


@pytest.mark.processes
def test_whoever_stops_reading_gets_no_traceback():
    with subprocess.Popen(
        [COMMAND, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors


@pytest.mark.processes
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--version", "--help", "check --help", "completion bash"])
def test_what_cannot_be_written_is_one_line_and_status_1(words, unbuffered):
    with Path("/dev/full").open("w") as full:
        environ = {"PYTHONUNBUFFERED": unbuffered}
        done = ran(COMMAND, *words.split(), stdout=full, environ=environ)
    assert (done.returncode, done.stderr) == (
        1,
        "boinc_gahp: the output could not be written completely: No space left on device\n",
    )


@pytest.mark.processes
def test_a_full_stderr_changes_no_exit_status():
    # It warns, on stderr, and goes on.
    warns = (
        "import sys; from boinc_gahp.cli import main; from boinc_gahp.terminal import live; "
        "main._run = lambda _: live.remark('trying again') or 5; sys.exit(main.main([]))"
    )
    for status, command in ((2, [COMMAND, "chek"]), (5, [sys.executable, "-c", warns])):
        with Path("/dev/full").open("w") as full:
            done = ran(*command, stderr=full)
        assert done.returncode == status


@pytest.mark.processes
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_like_one_that_nobody_reads(closed, home):
    done = ran("sh", "-c", f"{COMMAND} check --help {closed}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.processes
@pytest.mark.parametrize("action", [["check", "--config"], ["template", "check"]])
def test_a_path_that_is_no_text_is_shown_as_far_as_it_is(run, action):
    done = run(*action, "/nowhere/größe\udcff", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode in {1, 2}
    assert re.search(r"\\(udc|x)ff", done.stdout + done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["--\x1b[31m\nx"], ["check", "--\x1b[31m\nx"]])
def test_what_was_typed_does_nothing_to_the_terminal(words, capsys):
    assert InProcess(capsys).refuses(*words, status=2).count("\n") == 1
    assert "\x1b" not in InProcess(capsys).refuses("--config", "/nowhere/\x1b[31m", "batch", "list")


@pytest.mark.processes
def test_on_a_terminal_it_says_what_people_want_and_has_a_prompt(home, on_terminal):
    child = on_terminal()
    child.expect("boinc_gahp batch submit APP")
    child.expect("boinc_gahp>")
    child.send("QUIT\r")
    assert ended(child) == 0


def test_ctrl_c_is_said_in_a_line(monkeypatch, capsys):
    def interrupted(_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("boinc_gahp.cli.main._run", interrupted)
    assert main(["check"]) == 130
    assert capsys.readouterr() == ("", "boinc_gahp: interrupted\n")
