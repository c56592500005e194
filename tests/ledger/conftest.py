"""A ledger, and the same file opened elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from boinc_gahp.ledger import JobLedger, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "boinc_gahp" / "ledger.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    store = Store(path)
    yield store
    store.close()


@pytest.fixture
def elsewhere(store: Store) -> Iterator[Store]:
    other = Store(store.path)
    yield other
    other.close()


@pytest.fixture
def jobs(store: Store) -> JobLedger:
    return JobLedger(store)
