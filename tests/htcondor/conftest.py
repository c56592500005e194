"""A local project for the room's tests, and submit nodes with an account of their own each."""

import itertools

import pytest

from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.faultproxy import FaultProxy
from tests.htcondor.desk import desk_of
from tests.htcondor.helpers import Site

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def local_project(tmp_path_factory):
    """A project that misbehaves as the real server does, with volunteers at work."""
    directory = tmp_path_factory.mktemp("project")
    with LocalProject(directory, hosts=2, php=STOCK) as project:
        yield project


@pytest.fixture
def site(local_project, tmp_path):
    """A submit node; the project is well and works at the beginning."""
    authenticator = local_project.add_user(f"blah{next(_numbers)}")
    with FaultProxy(local_project.url) as proxy:
        site = Site(tmp_path, local_project, proxy, authenticator)
        site.heal()
        yield site
        site.heal()


@pytest.fixture
def jobs(site):
    """The ledger, opened as another process would open it."""
    with site.jobs() as jobs:
        yield jobs


@pytest.fixture
def desk(site):
    """A sender at work on the node's ledger."""
    with desk_of(site) as desk:
        yield desk
