"""Fixtures for tests of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from boinc_gahp import logs
from boinc_gahp.localproject import LocalProject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., subprocess.CompletedProcess[str]]

COMMAND = str(Path(sys.executable).with_name("boinc_gahp"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of its own, with nothing in it, which is also the working directory."""
    home = tmp_path / "home"
    home.mkdir()
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def run(home: Path) -> Run:
    """Runs the installed command in that home."""

    def run(
        *arguments: str, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments],
            input=stdin,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalProject]:
    """A local project without volunteers."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=0) as project:
        yield project


@pytest.fixture
def log_stopped() -> Iterator[None]:
    """Closes the log that a command has begun in this process."""
    yield
    logs.stop()
