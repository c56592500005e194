"""The conversations on the page about GAHP, held with a daemon and a local project."""

import os
import re
import sys
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from boinc_gahp.gahp import lines
from boinc_gahp.localproject.project import LocalProject
from tests.cli.conftest import write_settings
from tests.daemon.process import Daemon
from tests.documents.conftest import ROOT
from tests.helpers import wait_for

PAGE = (ROOT / "docs" / "reference" / "gahp.rst").read_text("utf-8")
TRANSCRIPTS = [
    textwrap.dedent(block)
    for block in re.findall(r"\.\. code-block:: none\n\n((?:   .*\n)+)", PAGE)
    if "<- $GahpVersion" in block
]

#: What is the page's own, and another each time: numbers with decimals, ids of HTCondor's jobs, the
#: version and its date.
CHANGING = re.compile(
    r"\b\d+\.\d{2,}\b|\bNULL 0 \d\S* \d\S*$|boinc/[0-9a-z]+\.\d+\b|(?<=GAHP\\ )\S+"
    r"|[A-Z][a-z]{2} \d\d \d{4}(?= BOINC)"
)
JOB_ID = re.compile(r"boinc/[0-9a-z]+\.\d+")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=1) as project:
        yield project


@pytest.fixture
def home(tmp_path, project):
    """A user's home, with the files that the transcripts name, and settings."""
    for name in ("my data.txt", "in.txt"):
        (tmp_path / name).write_text("lower\n")
    settings = tmp_path / ".config/boinc_gahp/boinc_gahp.toml"
    write_settings(settings, project.url, project.authenticator)
    return tmp_path


class Replay:
    """One conversation, line by line."""

    def __init__(self, daemon, home, project):
        self._daemon = daemon
        self._names = {
            "/home/me": str(home),
            "https://boinc.example.edu/test/": project.url,
            "0123456789abcdef": project.authenticator,
        }
        self._host = urlsplit(project.url).netloc
        self._prefix = b""
        self._job = ""
        self._next = 1000

    def send(self, line):
        for name, ours in self._names.items():
            line = line.replace(name, lines.escape(ours))
        line = line.replace("boinc/0a1b2c3d.7", self._job)
        self._daemon.send(line.encode() + b"\r\n")

    def expect(self, line):
        got = self._daemon.line().decode()
        found = JOB_ID.search(got)
        if found:
            self._job = found[0]
        got = got.replace(self._host, "boinc.example.edu")
        assert CHANGING.sub("…", got) == CHANGING.sub("…", line)
        if line.startswith("GAHP:"):
            self._prefix = b"GAHP:"

    def wait(self, following):
        """Do what "Later" says: ask, under ids of our own, until the next answer will do."""
        asked = re.match(r"-> (\w+) \d+(.*)", following)
        assert asked
        good = "DONE" if asked[1] == "BOINC_QUERY_BATCHES" else " 0 NULL 4 "

        seen = []

        def is_done():
            self._next += 1
            self.send(f"{asked[1]} {self._next}{asked[2]}")
            lines = [self._daemon.line(), self._daemon.line()]
            assert lines == [self._prefix + b"S", self._prefix + b"R"]
            seen.append(good in self._daemon_results())
            # A job that was completed once is said to run once more, until that is written down.
            return seen[-2:] == [True, True]

        wait_for(is_done, f"{good} of {following}", pause=0.2)

    def _daemon_results(self):
        head = self._daemon.ask(b"RESULTS")
        assert head == self._prefix + b"S 1"
        return self._daemon.line().decode()


@pytest.mark.processes
@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=["BOINC", "BLAH"])
def test_a_daemon_answers_as_the_page_says(transcript, home, project):
    environ = {"HOME": str(home), "PATH": os.defpath}
    command = [str(Path(sys.executable).with_name("boinc_gahp"))]
    with Daemon(command, environ=environ, cwd=home) as daemon:
        replay = Replay(daemon, home, project)
        lines = transcript.splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if line.startswith("# Later"):
                replay.wait(following)
            elif line.startswith("-> "):
                replay.send(line[3:])
            else:
                assert line.startswith("<- ")
                replay.expect(line[3:])
        daemon.end_input()
        status, output, errors = daemon.end()
    assert (status, output, errors) == (0, b"", b"")
    assert "LOWER" in "".join(
        path.read_text() for path in home.iterdir() if path.is_file() and path.name != "in.txt"
    )
