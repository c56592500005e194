import dataclasses
import re
import signal
import subprocess
import sys

import psutil
import pytest

from boinc_gahp.cli import demo
from boinc_gahp.localproject import directory as layout
from boinc_gahp.localproject.supplied import SUPPLIED
from tests.cli.conftest import COMMAND, InProcess
from tests.helpers import wait_for

pytestmark = pytest.mark.long


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The directory for temporary files."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    return directory


@pytest.fixture
def _no_child_left():
    yield
    wait_for(lambda: not psutil.Process().children(recursive=True), "no child process is left")


@pytest.mark.usefixtures("_no_child_left", "home")
class TestOnPipes:
    def test_every_output_comes_back_and_nothing_stays(self, run, home, temporary):
        done = run("demo")
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        assert done.stdout.endswith("20 of 20 outputs are right\n")
        assert "Submitting 20 jobs with 3 texts" in done.stdout
        assert "the batch is retired" in done.stdout
        assert re.search(r"^ *\d+\.\d s  .*running", done.stdout, re.MULTILINE)
        assert "\x1b" not in done.stdout
        assert list(temporary.iterdir()) == []
        # Not even in the home of who runs it.
        assert list(home.iterdir()) == []

    def test_the_conversation_is_shown_whatever_the_settings_of_who_runs_it(
        self, home, monkeypatch, capsys
    ):
        """As it was, but for the authenticator."""
        monkeypatch.setattr(demo, "_JOBS", 4)
        monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/x")
        settings = home / ".config/boinc_gahp/boinc_gahp.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text("wrong")
        out = InProcess(capsys, "demo").prints("--show-conversation", "--directory", "here")
        here = home / "here"
        texts = {path.read_text() for path in (here / "outputs").glob("*.txt")}
        assert len(texts) == 3
        assert all(text == text.upper() for text in texts)
        said = re.findall(r"^[<>] .*$", out, re.MULTILINE)
        assert said[0].startswith("< $GahpVersion: ")
        assert said[1] == "> COMMANDS"
        assert said[3:5] == ["> RESPONSE_PREFIX GAHP:", "< S"]
        assert said[5:7] == ["> ASYNC_MODE_ON", "< GAHP:S"]
        assert re.fullmatch(
            r"> BOINC_SELECT_PROJECT http://127.0.0.1:\d+/test/ <authenticator>", said[7]
        )
        assert sum(line.startswith("> BOINC_FETCH_OUTPUT ") for line in said) == 4
        assert any(line.startswith("> BOINC_RETIRE_BATCH ") for line in said)
        made = (here / "project/boinc_gahp.toml").read_text()
        [authenticator] = re.findall(r'authenticator = "(.*)"', made)
        assert authenticator not in out
        log = here / "daemon/state/boinc_gahp.log"
        assert "boinc_gahp.rpc" in log.read_text()
        assert authenticator not in log.read_text()

    def test_a_directory_in_use_is_left_alone(self, home, capsys):
        (home / "thesis.tex").touch()
        assert InProcess(capsys, "demo").refuses("--directory", ".") == (
            f"boinc_gahp: {home} is not empty; name a new or an empty directory "
            "[BG-LOCAL-PROJECT-TROUBLE]\n"
        )

    def test_it_can_be_stopped_and_leaves_nothing(self, temporary):
        with subprocess.Popen(
            [COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert any("running" in line for line in process.stdout)
            process.terminate()
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 128 + signal.SIGTERM
        assert errors == ""
        assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("_no_child_left", "home")
class TestWhatGoesWrong:
    def test_a_wrong_output_is_noticed(self, monkeypatch, temporary, capsys):
        """The app writes something else."""
        program = ("{python}", "-c", "open('out', 'w').write('no')")
        other = [dataclasses.replace(app, command=program) for app in SUPPLIED]
        monkeypatch.setattr(layout, "SUPPLIED", other)
        monkeypatch.setattr(demo, "_JOBS", 3)
        out = InProcess(capsys, "demo").prints("--directory", temporary / "here", status=1)
        assert "0 of 3 outputs are right" in out

    def test_a_failing_app_is_reported(self, monkeypatch, temporary, capsys):
        failing = [dataclasses.replace(app, command=("false",)) for app in SUPPLIED]
        monkeypatch.setattr(layout, "SUPPLIED", failing)
        monkeypatch.setattr(demo, "_JOBS", 3)
        err = InProcess(capsys, "demo")()[2]
        assert "jobs of demo#" in err
        assert "--directory" in err
        assert list(temporary.iterdir()) == []

    @pytest.mark.parametrize(
        ("program", "words"),
        [
            ("raise SystemExit(3)", "has ended with status 3"),
            ("print('hello', flush=True); input(); print('E', flush=True); input()", "with E"),
        ],
        ids=["ended", "an error line"],
    )
    def test_a_daemon_that_does_not_answer_as_it_should_is_reported(
        self, monkeypatch, temporary, capsys, program, words
    ):
        other = temporary / "boinc_gahp"
        other.write_text(f"#!{sys.executable}\n{program}\n")
        other.chmod(0o700)
        monkeypatch.setattr(demo, "_program", lambda: other)
        status, _, err = InProcess(capsys, "demo")("--directory", temporary / "here")
        assert (status, words in err) == (1, True)
