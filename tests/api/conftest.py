"""A local project, and accounts on it.

``site`` is an account of its own for each test; its projects go through a proxy that can go wrong.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest

from boinc_gahp.api.project import Project
from boinc_gahp.config.settings import ProjectSettings, Settings, State, Timeouts
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.localproject.php import STOCK
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import Outcome, ServerState
from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission
from tests.faultproxy import FaultProxy
from tests.localproject.in_containers import APP

_numbers = itertools.count(1)


@dataclass
class Site:
    """Somebody with an account on a project.

    Attributes:
        directory: the test's own.
        local: the project itself.
        proxy: between it and whoever uses ``project``.
        authenticator: the account's.
        project: open until the test's end; its time-outs and retries are short.
    """

    directory: object
    local: LocalProject
    proxy: FaultProxy
    authenticator: str
    stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self):
        self.project = self.open()

    def open(self, authenticator=None, *, retry=3.0):
        """Return a new project object, as another process would have it; closed at the end."""
        settings = Settings(
            project=ProjectSettings(ProjectUrl(self.proxy.url)),
            timeouts=Timeouts(connect=30, read=30, retry=retry),
            state=State(dir=self.directory / "state", cache_dir=self.directory / "cache"),
        )
        project = Project(self.proxy.url, authenticator or self.authenticator, settings=settings)
        return self.stack.enter_context(project)

    def elsewhere(self):
        """Return the same account's project on another machine."""
        state = State(dir=self.directory / "other", cache_dir=self.directory / "cache2")
        settings = replace(self.project.session.settings, state=state)
        project = Project(self.proxy.url, self.authenticator, settings=settings)
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


@pytest.fixture(scope="module")
def local_project(tmp_path_factory):
    """A project whose volunteers sleep, shared by a module; PHP's messages are in its replies."""
    directory = tmp_path_factory.mktemp("project")
    with LocalProject(directory, hosts=2, php=STOCK) as project:
        project.pause_volunteers()
        yield project


@pytest.fixture
def site(local_project, tmp_path):
    """An account of its own on the project."""
    authenticator = local_project.add_user(f"user{next(_numbers)}")
    with FaultProxy(local_project.url) as proxy, ExitStack() as stack:
        yield Site(tmp_path, local_project, proxy, authenticator, stack)


@pytest.fixture
def working(site):
    """A site whose volunteers work during the test, on nothing that was left over before it."""
    with site.local.core.db.write() as connection:
        connection.execute(
            "UPDATE result SET server_state = ?, outcome = ? WHERE server_state = ?",
            (ServerState.OVER, Outcome.DIDNT_NEED, ServerState.UNSENT),
        )
    site.local.resume_volunteers()
    yield site
    site.local.pause_volunteers()


# Containers.


@pytest.fixture(scope="module")
def volunteers(engine, tmp_path_factory):
    """A project as a real server, with an app for containers and volunteers that have an engine."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=4, php=STOCK) as project:
        project.add_container_app(APP)
        yield project


@pytest.fixture
def authenticator(volunteers, tmp_path):
    """That of an account of the test's own."""
    return volunteers.add_user(tmp_path.name.replace("_", "").lower()[-40:])


def for_containers(url, authenticator, directory, **timeouts):
    """Return a project that takes jobs in containers; it keeps its state in ``directory``."""
    settings = Settings(
        project=ProjectSettings(ProjectUrl(url), container_app=APP),
        timeouts=Timeouts(**timeouts),
        state=State(dir=directory / "state", cache_dir=directory / "cache"),
    )
    return Project(url, authenticator, settings=settings)
