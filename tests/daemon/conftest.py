"""A local project for daemons that run on pipes."""

import pytest

from boinc_gahp.localproject.project import LocalProject
from tests.daemon.conversation import conversing
from tests.daemon.stand_in import forward


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with two volunteers, shared by a module."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=2) as project:
        yield project


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch):
    forward(monkeypatch.setattr)


@pytest.fixture
def conversation():
    with conversing() as conversation:
        yield conversation
