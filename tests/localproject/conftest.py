"""A project without volunteers, emptied before each test.

``bench`` is a new project's directory without any threads.
"""

import math
import shutil

import pytest

from boinc_gahp.localproject.backend import programs
from boinc_gahp.localproject.directory import make
from boinc_gahp.localproject.project import LocalProject
from tests.localproject.bench import Bench
from tests.localproject.client import Client
from tests.localproject.on_host import OnHost
from tests.localproject.stage import Stage


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project") / "p", hosts=0) as project:
        yield project


@pytest.fixture
def client(project):
    stage = Stage(project)
    stage.clear()
    stage.clear_users()
    with Client(project) as client:
        yield client


@pytest.fixture(scope="session")
def empty_project(tmp_path_factory):
    directory = tmp_path_factory.mktemp("bench") / "project"
    make(directory)
    return directory


@pytest.fixture
def bench(empty_project, tmp_path, monkeypatch):
    # However slow the machine is, a pass gets to all that is due.
    monkeypatch.setattr(programs, "_PASS_SECONDS", math.inf)
    bench = Bench(shutil.copytree(empty_project, tmp_path / "p"))
    yield bench
    bench.close()


@pytest.fixture
def host(bench):
    """The first host of ``bench``, for single jobs."""
    return OnHost(bench.core)
