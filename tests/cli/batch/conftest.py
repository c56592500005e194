"""A project with volunteers, and ``boinc_gahp batch`` in this process, on pipes, on a terminal."""

import contextlib
import os

import pytest

from boinc_gahp.cli.batch import waiting as waiting_module
from boinc_gahp.cli.main import main
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.rpc.client import WebRpcs as Rpc
from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission
from boinc_gahp.states import BatchState
from tests.cli.conftest import COMMAND, InProcess, write_settings
from tests.faultproxy import FaultProxy
from tests.helpers import ran, wait_for
from tests.inside import down, unfinished_jobs
from tests.terminal.screen import Terminal


class Site:
    """A project whose volunteers rest, and its submitter.

    Attributes:
        project: the project.
        config: the submitter's settings file; BOINC_GAHP_CONFIG names it in every test.
        rpc: the submitter's RPCs.
    """

    def __init__(self, project, config):
        self.project = project
        self.config = config
        self.rpc = Rpc(project.url, project.authenticator)
        self._number = 0

    def batch(self, *lines, name=None, lease=0):
        """Submit a batch of uppercase with a job for each command line; return id and name.

        Without a name it gets one of its own, and its jobs are called ``<name>_0``, ``<name>_1``.
        """
        self._number += 1
        own = f"b{os.getpid()}n{self._number}"
        name = name or own
        batch_id = self.rpc.create_batch(name, "uppercase", expire_time=lease)
        if lines:
            jobs = [
                JobSubmission(f"{own}_{number}", line, (InputFile.inline("hello\n"),))
                for number, line in enumerate(lines)
            ]
            self.rpc.submit_batch(BatchSubmission("uppercase", jobs, batch_id=batch_id))
        return batch_id, name

    def work(self):
        """Let the volunteers work until no job is left."""
        self.project.resume_volunteers()
        wait_for(lambda: not unfinished_jobs(self.project), "the end of all jobs")
        self.project.pause_volunteers()

    def down(self):
        """Stop the project's web server for a while."""
        return down(self.project)

    def finished(self, *lines):
        """Submit a batch and let it be worked on; return id and name.

        What is left of other batches is aborted before, so that nobody has to wait for it.
        """
        for info in self.rpc.query_batches():
            if info.state is BatchState.IN_PROGRESS:
                self.rpc.abort_batch(batch_id=info.id)
        made = self.batch(*lines)
        self.work()
        return made


@contextlib.contextmanager
def opened(directory, **options):
    """Run a project in a directory; yield it with its submitter."""
    config = directory / "boinc_gahp.toml"
    with LocalProject(directory / "project", **options) as project:
        write_settings(config, project.url, project.authenticator)
        site = Site(project, config)
        yield site
        site.rpc.close()


@pytest.fixture(scope="session")
def _site(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("batches"), hosts=2) as site:
        site.project.pause_volunteers()
        yield site


@pytest.fixture
def site(_site, monkeypatch):
    """The project of all tests of batches, whose settings the command finds by itself."""
    monkeypatch.setenv("BOINC_GAHP_CONFIG", str(_site.config))
    return _site


@pytest.fixture(scope="session")
def done(_site):
    """A batch of two jobs that are done: its id and name. Tests only read it."""
    return _site.finished("", "")


@pytest.fixture(scope="session")
def mixed(_site):
    """A batch of a job that is done, and one that failed. Tests only read it."""
    return _site.finished("", "--fail 7")


@pytest.fixture
def often(monkeypatch):
    """Has the project asked more often than anybody should."""
    monkeypatch.setattr(waiting_module, "SHORTEST", 0.05)
    monkeypatch.setattr(waiting_module, "LONGEST", 0.2)


@pytest.fixture
def tag(tmp_path):
    """A text for names that no other test has."""
    return tmp_path.name


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory, with an input file; state and cache are this test's own, too."""
    for kind in ("STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    here = tmp_path / "here"
    here.mkdir()
    (here / "in.txt").write_text("hello\n")
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def small(site):
    """Settings of whose requests each has 10,000 bytes at most."""
    # Beside the other: the authenticator's file is named from there.
    config = site.config.with_name("small.toml")
    config.write_text(f"{site.config.read_text()}max_post_bytes = 10_000\n")
    return config


@pytest.fixture
def proxy(site, here, monkeypatch):
    """A proxy that the settings name; the project does not have the input file yet."""
    (here / "in.txt").write_text(str(here))
    with FaultProxy(site.project.url) as proxy:
        config = write_settings(
            here.with_name("boinc_gahp.toml"),
            proxy.url,
            site.project.authenticator,
            "[timeouts]\nretry = 0.1\n",
        )
        monkeypatch.setenv("BOINC_GAHP_CONFIG", str(config))
        yield proxy


class Command(InProcess):
    """``boinc_gahp batch``, each time as cheaply as the test permits.

    Attributes:
        terminal: environment variables for :meth:`screen`.
        installed: the words that run the installed command.
    """

    installed = (COMMAND, "batch")

    def __init__(self, capsys, on_terminal):
        super().__init__(capsys, "batch")
        self._on_terminal = on_terminal
        self.terminal = {}

    def piped(self, *words, stdin="", **environment):
        """Run the installed command on pipes."""
        return ran(*self.installed, *words, input=stdin, environ=environment)

    def on_terminal(self, *words, **given):
        """Run the installed command on a terminal; it has ended at the end of the test."""
        return self._on_terminal("batch", *words, **given)

    def screen(self, *words, columns=80):
        """Run it in this process, on a terminal of its own; return what it has written there."""
        return screen(["batch", *map(str, words)], columns=columns, **self.terminal)


@pytest.fixture
def batch(site, capsys, on_terminal):
    """``boinc_gahp batch`` for the submitter of ``site``."""
    return Command(capsys, on_terminal)


def screen(words, *, columns=80, **environment):
    """Run a command in this process, on a terminal; return what it has written there."""
    with Terminal(columns) as terminal, pytest.MonkeyPatch.context() as patch:
        for name in ("NO_COLOR", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm", **environment}.items():
            patch.setenv(name, value)
        patch.setattr("sys.stdout", terminal.stream)
        with contextlib.suppress(SystemExit):
            main(words)
        terminal.stream.flush()
    return terminal.text
