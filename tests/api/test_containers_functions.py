"""Functions that volunteers call, from the call to the value, in real containers."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from boinc_gahp import Project
from boinc_gahp.config import ProjectSettings, Settings, State, Timeouts
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import RemoteError
from boinc_gahp.localproject import LocalProject, Quirks
from tests.helpers import wait_for
from tests.localproject.in_containers import APP, add_container_app
from tests.python_image import PYTHON_IMAGE, python_image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.api import Function, Poll
    from tests.containers_engine import Engine

pytestmark = [pytest.mark.long, pytest.mark.containers]

_TIMEOUT = 250


@pytest.fixture(scope="module")
def volunteers(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalProject]:
    """A project as a real server, with volunteers that have an engine and an image of Python."""
    python_image(engine)
    directory = tmp_path_factory.mktemp("project")
    with LocalProject(directory, hosts=0):
        pass
    add_container_app(directory)
    with LocalProject(directory, hosts=4, quirks=Quirks.as_is()) as project:
        yield project


@pytest.fixture
def project(
    volunteers: LocalProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    authenticator = volunteers.add_user(tmp_path.name[:40].replace("_", "").lower())
    settings = Settings(
        project=ProjectSettings(ProjectUrl(volunteers.url), container_app=APP),
        timeouts=Timeouts(connect=5, read=20, retry=20),
        state=State(dir=tmp_path / "state", cache_dir=tmp_path / "cache"),
    )
    with Project(volunteers.url, authenticator, settings=settings) as opened:
        yield opened


def divide(number: int, by: int) -> float:
    print("dividing", number)
    return number / by


def test_a_call_returns_its_value_and_what_it_raises(project: Project) -> None:
    function = project.function(divide, image=PYTHON_IMAGE)
    good, bad = function.starmap([(3, 2), {"number": 1, "by": 0}])
    assert good.result(_TIMEOUT) == 1.5
    assert good.parameters == {"number": 3, "by": 2}
    error = bad.exception(_TIMEOUT)
    assert isinstance(error, RemoteError)
    assert (error.type_name, error.message) == ("ZeroDivisionError", "division by zero")
    assert "return number / by" in error.traceback
    assert "divide(number=1, by=0), job" in str(error)
