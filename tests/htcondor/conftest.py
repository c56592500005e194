"""A local project for the room's tests, and submit nodes with an account of their own each."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject.php import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.faultproxy import FaultProxy
from tests.htcondor.desk import desk_of
from tests.htcondor.helpers import Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.ledger.jobs import JobLedger
    from tests.htcondor.desk import Desk

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def local_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalProject]:
    """A project that misbehaves as the real server does, with volunteers at work."""
    directory = tmp_path_factory.mktemp("project")
    with LocalProject(directory, hosts=2, php=STOCK) as project:
        yield project


@pytest.fixture
def site(local_project: LocalProject, tmp_path: Path) -> Iterator[Site]:
    """A submit node; the project is well and works at the beginning."""
    authenticator = local_project.add_user(f"blah{next(_numbers)}")
    with FaultProxy(local_project.url) as proxy:
        site = Site(tmp_path, local_project, proxy, authenticator)
        site.heal()
        yield site
        site.heal()


@pytest.fixture
def jobs(site: Site) -> Iterator[JobLedger]:
    """The ledger, opened as another process would open it."""
    with site.jobs() as jobs:
        yield jobs


@pytest.fixture
def desk(site: Site) -> Iterator[Desk]:
    """A sender at work on the node's ledger."""
    with desk_of(site) as desk:
        yield desk
