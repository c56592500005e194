"""A local project, and accounts on it.

``site`` is an account of its own for each test; its projects go through a proxy that can go wrong.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from boinc_gahp.api.project import Project
from boinc_gahp.api.watching import Poll
from boinc_gahp.config.settings import ProjectSettings, Settings, State, Timeouts
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.localproject.states import Outcome, ServerState
from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission
from boinc_gahp.submit.types import InlineFile, Job
from tests import inside
from tests.faultproxy import FaultProxy, body
from tests.localproject.in_containers import APP

#: For watches that need not be polite.
QUICK = Poll(0.02, 0.1)

#: What a project says to an account that it does not know.
REFUSED = body(
    b"<error><error_num>-136</error_num><error_msg>bad authenticator</error_msg></error>"
)

_numbers = itertools.count(1)

#: How programs of tests begin: with a project, and ``given``, words of the test.
_OPENING = f"""
import sys
from pathlib import Path
from boinc_gahp import InlineFile, Project
from boinc_gahp.api.watching import Poll
from boinc_gahp.config.settings import ProjectSettings, Settings, State
from boinc_gahp.config.urls import ProjectUrl
url, authenticator, home, *given = sys.argv[1:]
project = Project(url, authenticator, settings=Settings(
    project=ProjectSettings(ProjectUrl(url), container_app={APP!r}),
    state=State(dir=Path(home) / "state", cache_dir=Path(home) / "cache"),
))
"""


@dataclass
class Site:
    """Somebody with an account on a project.

    Attributes:
        directory: the test's own.
        local: the project itself.
        proxy: between it and whoever uses ``project``.
        authenticator: the account's.
        stack: closes at the test's end what is open.
        retry: for how long requests are repeated, in seconds.
        project: open until the test's end.
        name: for a batch; no other test has it.
    """

    directory: object
    local: object
    proxy: FaultProxy
    authenticator: str
    stack: ExitStack
    retry: float = 3.0
    project: Project = field(init=False)

    def __post_init__(self):
        self.name = self.directory.name
        self.project = self.open()

    def open(self, authenticator=None, *, home=".", retry=None, **limits):
        """Return a new project object, as another process would have it; closed at the end.

        With another ``home``, below the test's directory, as another machine would have it.
        """
        own = self.directory / home
        retry = self.retry if retry is None else retry
        settings = Settings(
            project=ProjectSettings(ProjectUrl(self.proxy.url), container_app=APP, **limits),
            timeouts=Timeouts(connect=30, read=30, retry=retry),
            state=State(dir=own / "state", cache_dir=own / "cache"),
        )
        project = Project(self.proxy.url, authenticator or self.authenticator, settings=settings)
        return self.stack.enter_context(project)

    def somebody_else(self):
        """Return the same project as another account sees it."""
        return self.open(self.local.add_user(f"other{next(_numbers)}"))

    def batch(self, jobs=3, name=None, args="", project=None):
        """Submit uppercase jobs, called jN_0, jN_1, ..., by the web RPCs themselves."""
        project = project or self.project
        name = name or f"batch{next(_numbers)}"
        prefix = f"j{next(_numbers)}"
        batch_id = project.rpc.create_batch(name, "uppercase")
        listed = [
            JobSubmission(f"{prefix}_{n}", args, (InputFile.inline(f"{name} {n}\n"),))
            for n in range(jobs)
        ]
        if jobs:
            project.rpc.submit_batch(BatchSubmission("uppercase", listed, batch_id=batch_id))
        return project.batch(batch_id)

    def submit(self, jobs, name=None, *, project=None, home=".", **options):
        """Submit jobs from a process of its own, perhaps on another machine.

        A number makes so many jobs, whose arguments and parameters are their numbers.
        """
        if isinstance(jobs, int):
            rows = [{"n": n} for n in range(jobs)]
            jobs = [
                Job(["-n", str(row["n"])], {"in": InlineFile(f"{row['n']}\n")}, parameters=row)
                for row in rows
            ]
        project = project or self.open(home=home)
        return project.submit("uppercase", jobs, name=name or self.name, **options)

    def plan(self, jobs, name=None, **options):
        """Return what a submit of jobs would do."""
        return self.project.plan("uppercase", jobs, name=name or self.name, **options)

    def change(self, statement, *parameters):
        """Change the project's database."""
        inside.change(self.local, statement, *parameters)

    def rows(self, query, *parameters):
        """Ask the project's database."""
        return [tuple(row) for row in inside.rows(self.local, query, *parameters)]

    def spoil(self, batch, *names, mask=2):
        """Make jobs fail, or all of them, as the project's database shows it."""
        for name in names or [job.name for job in batch]:
            self.change("UPDATE workunit SET error_mask = ? WHERE name = ?", mask, name)
        return batch.refresh()

    def down(self):
        """Stop the project's web server for a while."""
        return inside.down(self.local)

    def program(self, text, *given):
        """Start a program that uses the project, in another process."""
        words = [self.proxy.url, self.authenticator, str(self.directory), *map(str, given)]
        command = [sys.executable, "-c", _OPENING + text, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def inline(*args, text="x"):
    """Return a job for each arguments, with a small input."""
    return [Job(each, {"in": InlineFile(text)}) for each in args or [""]]


@contextmanager
def _account(local, directory, **options):
    authenticator = local.add_user(f"user{next(_numbers)}")
    with FaultProxy(local.url) as proxy, ExitStack() as stack:
        yield Site(directory, local, proxy, authenticator, stack, **options)


@pytest.fixture
def site(local_project, tmp_path):
    """An account of its own on the project."""
    with _account(local_project, tmp_path) as site:
        yield site


@pytest.fixture
def working(site):
    """A site whose volunteers work during the test, on nothing that was left over before it."""
    site.change(
        "UPDATE result SET server_state = ?, outcome = ? WHERE server_state = ?",
        *(ServerState.OVER, Outcome.DIDNT_NEED, ServerState.UNSENT),
    )
    site.local.resume_volunteers()
    yield site
    site.local.pause_volunteers()


@pytest.fixture
def in_containers(container_project, tmp_path, monkeypatch):
    """An account of its own on that project, in an empty working directory."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with _account(container_project, tmp_path, retry=20.0) as site:
        yield site
