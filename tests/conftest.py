"""Fixtures that tests of every room share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _own_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tests, and what they start, from the settings, logs and ledger of who runs them."""
    base = tmp_path_factory.mktemp("xdg")
    before = dict(os.environ)
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        os.environ[f"XDG_{kind}_HOME"] = str(base / kind.lower())
    os.environ["XDG_CONFIG_DIRS"] = str(base / "site")
    os.environ.pop("BOINC_GAHP_CONFIG", None)
    yield
    os.environ.clear()
    os.environ.update(before)
