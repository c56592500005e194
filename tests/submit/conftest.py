"""A local project, and contexts to it."""

import itertools
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from boinc_gahp.config.settings import (
    JobSettings,
    ProjectSettings,
    Settings,
    StagingSettings,
    Timeouts,
)
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.fetch.context import FetchContext
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.submit import trees
from boinc_gahp.submit.boinc_submit import boinc_submit
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.generated_files import GeneratedFiles
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from tests.faultproxy import FaultProxy
from tests.inside import change, rows, workunit_names

_numbers = itertools.count(1)


@dataclass
class Site:
    """A submit node: a context to a project through a proxy that can go wrong."""

    directory: Path
    local: LocalProject
    proxy: FaultProxy
    authenticator: str
    ledger: Ledger
    options: ClientOptions = field(
        default_factory=lambda: ClientOptions(connect_timeout=30, read_timeout=30, retry_total=3)
    )

    def project(self):
        return WebRpcs(self.proxy.url, self.authenticator, options=self.options)

    @contextmanager
    def context(
        self,
        *,
        staging=StagingSettings(),  # noqa: B008  (frozen)
        submit_margin=60.0,
        **of_project,
    ):
        """Yield a new context, as a new process would have it; others are project's settings."""
        project_settings = ProjectSettings(ProjectUrl(self.proxy.url), **of_project)
        settings = Settings(
            project=project_settings,
            staging=staging,
            timeouts=Timeouts(connect=30, read=30, retry=3, submit_margin=submit_margin),
            jobs=JobSettings(templates_cached=0),
        )
        with self.project() as project:
            context = FetchContext.of(
                project, settings, self.ledger, self.directory / "cache", project_settings
            )
            try:
                yield context
            finally:
                context.close()

    def file(self, contents):
        """Return an input file with these contents."""
        path = self.directory / f"{next(_numbers)}-in.txt"
        path.write_bytes(contents)
        return LocalFile(path)

    def batch(self, jobs=3, files=2, name=""):
        """Return a request for ``jobs`` uppercase jobs over ``files`` distinct files."""
        name = name or f"batch#{next(_numbers)}"
        inputs = [self.file(f"{name} {n}".encode()) for n in range(files)]
        return SubmitRequest(
            name,
            "uppercase",
            [(f"{name}#{n}.0", Job(inputs={"in": inputs[n % files]})) for n in range(jobs)],
        )

    def paths(self, request):
        """Return the local input files of the request's jobs, in order, some more than once."""
        files = [file for _, job in request.jobs for file in job.inputs.values()]
        return [Path(file.path) for file in files if isinstance(file, LocalFile)]

    def submit(self, request, journal=None, **more):
        """Submit a batch, as a process of its own does; return its id."""
        with self.context(**more) as context:
            return submit(context, request, journal)

    def boinc_submit(self, request, seconds=270.0, **more):
        """Do the same for a gridmanager that has to have the answer in so many seconds."""
        with self.context(**more) as context:
            return boinc_submit(context, request, time.monotonic() + seconds)

    @property
    def owner(self):
        with self.project() as project:
            return project.url, project.account

    @property
    def pending(self):
        """The account's aborts that are due, in the ledger."""
        return self.ledger.pending_aborts(*self.owner, time.time())

    def state(self, request):
        """Return a batch's state, as the project tells it."""
        with self.project() as project:
            return project.query_batch(batch_name=request.batch_name).batch.state

    def set_state(self, request, state):
        """Put a batch into a state that it has after a submit that ended half way, or later."""
        change(self.local, "UPDATE batch SET state = ? WHERE name = ?", state, request.batch_name)

    def row(self, table, key):
        """Return a workunit (by its name) or a batch (by its id) as it is stored."""
        column = "name" if table == "workunit" else "id"
        [row] = rows(self.local, f"SELECT * FROM {table} WHERE {column} = ?", key)
        return row

    def workunits(self, request):
        """Return the project's workunits whose names begin with the batch's."""
        prefix = request.batch_name + "#"
        return sorted(name for name in workunit_names(self.local) if name.startswith(prefix))

    def names(self, request):
        """Return the names of the request's jobs."""
        return sorted(name for name, _ in request.jobs)


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "state" / "ledger.sqlite")
    yield ledger
    ledger.close()


@pytest.fixture
def site(local_project, tmp_path, ledger):
    """A submit node with an account of its own on the project."""
    authenticator = local_project.add_user(f"user{next(_numbers)}")
    with FaultProxy(local_project.url) as proxy:
        yield Site(tmp_path, local_project, proxy, authenticator, ledger)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Made files; directories are looked through each time, as if the last time were long ago."""
    monkeypatch.setattr(trees, "_REST", 0.0)
    return GeneratedFiles(tmp_path / "state" / "made")
