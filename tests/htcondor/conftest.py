"""A local project for the room's tests, and submit nodes with an account of their own each."""

import itertools
from dataclasses import replace

import pytest

from boinc_gahp.htcondor import _rollback, _sending
from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.submit import abort
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
def sending(site, monkeypatch):
    """The node's hosts do nothing, and all waits are short."""
    site.local.pause_volunteers()
    site.reset(send_after=0.0, poll_shortest=0.05, poll_longest=0.1)
    site.timeouts = replace(site.timeouts, retry=1)
    for module in (abort, _rollback, _sending):
        monkeypatch.setattr(module, "ABORT_AGAIN", 0.3)


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
