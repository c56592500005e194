"""Projects without volunteers: one sane, one as the real server is; emptied before each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject import LocalProject, Quirks

from .client import Client
from .stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, LocalProject]]:
    root = tmp_path_factory.mktemp("projects")
    with (
        LocalProject(root / "sane", hosts=0) as sane,
        LocalProject(root / "as_is", hosts=0, quirks=Quirks.as_is()) as as_is,
    ):
        yield {"sane": sane, "as_is": as_is}


@pytest.fixture(params=["sane", "as_is"])
def client(request: pytest.FixtureRequest, projects: dict[str, LocalProject]) -> Iterator[Client]:
    yield from _client(projects[request.param])


@pytest.fixture
def sane(projects: dict[str, LocalProject]) -> Iterator[Client]:
    yield from _client(projects["sane"])


@pytest.fixture
def as_is(projects: dict[str, LocalProject]) -> Iterator[Client]:
    yield from _client(projects["as_is"])


def _client(project: LocalProject) -> Iterator[Client]:
    Stage(project).clear()
    with Client(project) as client:
        yield client
