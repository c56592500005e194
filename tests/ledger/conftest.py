"""A ledger, and the same file opened elsewhere."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "boinc_gahp" / "ledger.sqlite"


@pytest.fixture(scope="session")
def new_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with nothing in it, to be copied: making one waits for the disk many times."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    Store(path).close()
    return path


def quick(path: Path) -> Store:
    """Open a ledger without waiting for the disk, which only a loss of power would show."""
    store = Store(path)
    store._connection.execute("PRAGMA synchronous = OFF")
    return store


@pytest.fixture
def store(path: Path, new_ledger: Path) -> Iterator[Store]:
    path.parent.mkdir(mode=0o700, parents=True)
    shutil.copy(new_ledger, path)
    store = quick(path)
    yield store
    store.close()


@pytest.fixture
def elsewhere(store: Store) -> Iterator[Store]:
    other = quick(store.path)
    yield other
    other.close()


@pytest.fixture
def jobs(store: Store) -> JobLedger:
    return JobLedger(store)
