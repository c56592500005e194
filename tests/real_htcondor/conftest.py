"""A real HTCondor: ``scripts/test --htcondor`` makes it, and runs these tests and no others."""

import os
from pathlib import Path

import pytest

from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.real_htcondor.node import CONTAINERS, set_up
from tests.real_htcondor.pool import Pool


@pytest.fixture(scope="session")
def pool():
    """HTCondor at work, with an empty queue and users that have never sent a job."""
    directory = os.environ.get("HTCONDOR_CHROOT")
    if not directory:
        pytest.skip("a chroot with HTCondor is needed: run scripts/test --htcondor")
    pool = Pool(Path(directory).resolve())
    pool.control("stop")
    pool.clean()
    pool.control("start")
    yield pool
    pool.control("stop")


@pytest.fixture(scope="session")
def node(pool, tmp_path_factory):
    """The submit node, with a project that misbehaves as the real server does."""
    base = tmp_path_factory.mktemp("projects")
    with LocalProject(base / "main", hosts=4, php=STOCK) as project:
        # The others are those that tests have for themselves.
        yield set_up(pool, project, base, ("away", "killed", "watched", CONTAINERS))


@pytest.fixture(scope="module")
def volunteers(node, engine):
    """Four volunteers, who have the engine; lends the directory of their project."""
    assert engine.program
    other = node.others[CONTAINERS]
    process = other.start()
    yield other.directory
    process.terminate()
    process.wait(60)
