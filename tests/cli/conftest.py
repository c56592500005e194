"""Fixtures for tests of the command line."""

import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from boinc_gahp import logs
from boinc_gahp.cli.check import project_checks
from boinc_gahp.cli.main import main
from boinc_gahp.localproject.directory import open_core
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.terminal import live
from tests.cli.condor_tools import Condor
from tests.cli.watching import Desk
from tests.helpers import command, hang_up, ran
from tests.localproject.batches import made_batch

COMMAND = str(Path(sys.executable).with_name("boinc_gahp"))


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """Keeps them out of the errors, however long a command takes on this machine."""
    monkeypatch.setattr(live, "PAUSE", math.inf)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home directory of its own, with nothing in it, which is also the working directory."""
    home = tmp_path / "home"
    home.mkdir()
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def run(home):
    """Runs the installed command in that home."""

    def run(*arguments, stdin="", **environment):
        return ran(COMMAND, *arguments, input=stdin, environ=environment)

    return run


@pytest.fixture
def on_terminal():
    """Runs the installed command on a terminal; at the end of the test it has ended."""
    children = []

    def start(*words, columns=80, **environment):
        kept = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        child = pexpect.spawn(
            COMMAND,
            [*map(str, words)],
            dimensions=(40, columns),
            encoding="utf-8",
            timeout=60,
            env={**kept, "TERM": "xterm", **environment},
        )
        children.append(child)
        return child

    yield start
    for child in children:
        hang_up(child)


def ended(child):
    """Return the exit status of what runs on a terminal, when it has ended."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A local project without volunteers."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=0) as project:
        yield project


@pytest.fixture
def log_stopped():
    """Closes the log that a command has begun in this process."""
    yield
    logs.stop()


class InProcess:
    """A command in this process; a call returns its exit status, stdout and stderr."""

    def __init__(self, capsys, *words):
        self._capsys = capsys
        self._words = words

    def __call__(self, *words, stdin=""):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            return command(self._capsys, *self._words, *words)

    def prints(self, *words, status=0, **given):
        """Return what it prints; it ends so, without a word on stderr."""
        ended, out, err = self(*words, **given)
        assert (ended, err) == (status, ""), out
        return out

    def refuses(self, *words, status=1, **given):
        """Return what it says on stderr; it ends so, and prints nothing."""
        ended, out, err = self(*words, **given)
        assert (ended, out) == (status, ""), err
        return err

    def json(self, *words, status=0):
        """Return the document that it prints."""
        ended, out, err = self(*words, "--json")
        assert ended == status, err
        return json.loads(out)


class Report:
    """What check printed."""

    def __init__(self, text):
        self.text = text
        self.points = [
            (word, rest)
            for word, rest in re.findall(r"^(ok|note|warning|FAILED) +(.*)$", text, re.MULTILINE)
        ]

    def of(self, topic):
        """Return level and text of the points on a topic."""
        return [
            (word, rest.removeprefix(topic))
            for word, rest in self.points
            if rest.startswith((f"{topic}:", f"{topic} "))
        ]

    def only(self, topic, level, *words):
        """Return the text of the only point on a topic, which has this level and these words."""
        [point] = self.of(topic)
        return told(point, level, *words)

    def levels(self):
        return {word for word, _ in self.points}


def told(point, level, *words):
    """Return the text of a point, which has this level and these words."""
    found, text = point
    assert (found, [word for word in words if word not in text]) == (level, []), text
    return text


def write_settings(path, url, authenticator, more="", section="project"):
    """Write a settings file for a project, with the authenticator in a file beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"[{section}]\nurl = '{url}'\nauthenticator_file = 'key'\n{more}")
    key = path.with_name("key")
    key.write_text(authenticator)
    key.chmod(0o600)
    return path


@pytest.fixture
def settings(home, project):
    """The settings file in that home, for the project."""
    path = home / ".config/boinc_gahp/boinc_gahp.toml"
    return write_settings(path, project.url, project.authenticator)


@pytest.fixture
def check(home, capsys, monkeypatch):
    """Runs ``boinc_gahp check`` in this process; its exit status is that of what it has found."""
    monkeypatch.setattr(project_checks, "RETRY", 0.3)

    def check(*arguments):
        status, out, err = command(capsys, "check", *arguments)
        report = Report(out)
        assert (status, err) == (1 if report.levels() & {"warning", "FAILED"} else 0, "")
        return report

    return check


@pytest.fixture
def desk(home, capsys):
    """A user's settings, ledger and jobs."""
    desk = Desk(home, capsys)
    yield desk
    desk.close()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A project that does not run, with a file ``data.txt`` staged."""
    directory = tmp_path_factory.mktemp("home") / "p"
    assert main(["local-project", "init", str(directory)]) == 0
    data = directory.parent / "data.txt"
    data.write_text("hello\n")
    assert main(["local-project", "stage-file", str(directory), str(data)]) == 0
    return directory


@contextmanager
def running(directory, *words):
    """Run a local project in a process of its own; whatever is left of it is ended at the end.

    Yield the process, and the first line that it prints.
    """
    with subprocess.Popen(
        [COMMAND, "local-project", "run", directory, *words], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            first = process.stdout.readline()
            assert "The project answers at " in first
            yield process, first
        finally:
            if process.poll() is None:
                process.terminate()


class LocalProjectCommand(InProcess):
    """An action of ``local-project`` with a project."""

    def __init__(self, capsys, directory):
        super().__init__(capsys, "local-project")
        self._directory = directory

    def __call__(self, action, *words, **given):
        return super().__call__(action, self._directory, *words, **given)


@pytest.fixture
def do(directory, capsys):
    """Does an action of ``local-project`` with that project, in this process."""
    return LocalProjectCommand(capsys, directory)


def empty_batch(directory, name):
    """Make a batch of the app uppercase in a project; return its number."""
    core = open_core(directory)
    try:
        return str(made_batch(core, name, []))
    finally:
        core.db.close()


def rows(directory, query, *parameters):
    """Return rows of a project's database, whether it runs or not."""
    core = open_core(directory)
    try:
        return [dict(row) for row in core.db.connection().execute(query, parameters)]
    finally:
        core.db.close()


@pytest.fixture
def public():
    """A directory that everybody can read, as those of pytest are not."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def gahp(public):
    """A program that everybody can run."""
    program = public / "boinc_gahp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def condor(home, gahp, monkeypatch):
    """HTCondor 23.9.6 with a BOINC_GAHP, and without a Job Router."""
    condor = Condor(home / "bin")
    monkeypatch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    condor.set(BOINC_GAHP=str(gahp), DAEMON_LIST="MASTER, SCHEDD")
    condor.version("23.9.6")
    return condor
