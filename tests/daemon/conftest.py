"""A local project for daemons that run on pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject.project import LocalProject
from tests.daemon.stand_in import forward

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalProject]:
    """A project with two volunteers, shared by a module."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=2) as project:
        yield project


@pytest.fixture(autouse=True)
def _stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    forward(monkeypatch.setattr)
