"""A ledger, and the same file opened elsewhere."""

import shutil

import pytest

from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.store import Store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "boinc_gahp" / "ledger.sqlite"


@pytest.fixture(scope="session")
def new_ledger(tmp_path_factory):
    """A ledger with nothing in it, to be copied: making one waits for the disk many times."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    Store(path).close()
    return path


def quick(path):
    """Open a ledger without waiting for the disk, which only a loss of power would show."""
    store = Store(path)
    store._connection.execute("PRAGMA synchronous = OFF")
    return store


@pytest.fixture
def store(path, new_ledger):
    path.parent.mkdir(mode=0o700, parents=True)
    shutil.copy(new_ledger, path)
    store = quick(path)
    yield store
    store.close()


@pytest.fixture
def elsewhere(store):
    other = quick(store.path)
    yield other
    other.close()


@pytest.fixture
def jobs(store):
    return JobLedger(store)
