"""The ledger, each claim looked at through a second connection."""

import sqlite3
import subprocess
import sys
from functools import partial

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.ledger.opening import BUSY_TIMEOUT, network_filesystem
from boinc_gahp.secret import Authenticator
from tests.ledger.jobs import ACCOUNT, MINE, URL


@pytest.fixture
def ledger(path):
    ledger = Ledger(path)
    yield ledger
    ledger.close()


@pytest.fixture
def other(ledger):
    """The same file, opened elsewhere."""
    other = Ledger(ledger.path)
    yield other
    other.close()


def test_aborted_jobs_belong_to_a_project_and_an_account(ledger, other):
    ledger.record_aborted(*MINE, ["b#1.0"])
    assert other.aborted_jobs(URL, "fedcba9876543210") == frozenset()
    assert other.aborted_jobs("https://elsewhere.example/", ACCOUNT) == frozenset()


def test_an_aborted_job_of_an_unknown_batch_is_forgotten_once_its_batch_is_learned(ledger, other):
    ledger.record_aborted(*MINE, ["job"])
    ledger.forget_aborted(*MINE, "b")
    assert other.aborted_jobs(*MINE) == {"job"}
    ledger.learn_batch(*MINE, "b", ["job", "never aborted"])
    assert other.aborted_jobs(*MINE) == {"job"}
    ledger.forget_aborted(*MINE, "b")
    assert other.aborted_jobs(*MINE) == frozenset()


def test_recording_an_abort_again_keeps_the_batch_that_was_learned(ledger):
    ledger.record_aborted(*MINE, ["job"], "b")
    ledger.record_aborted(*MINE, ["job"])
    ledger.forget_aborted(*MINE, "b")
    assert ledger.aborted_jobs(*MINE) == frozenset()


def test_learning_what_is_known_writes_nothing(ledger):
    ledger.record_aborted(*MINE, ["job"], "b")
    reader = sqlite3.connect(ledger.path)
    before = reader.execute("PRAGMA data_version").fetchone()
    ledger.learn_batch(*MINE, "b", ["job"])
    assert reader.execute("PRAGMA data_version").fetchone() == before
    reader.close()


def noted(ledger):
    return [
        (batch.name, batch.project_batch_id, batch.state, batch.not_before)
        for batch in ledger.pending_aborts(*MINE, 0.0)
    ]


def test_a_submission_is_given_up_only_if_nobody_has_begun_it_again(ledger, other):
    ledger.begin_submit(*MINE, "b", 7, 1000.0)
    (seen,) = other.pending_aborts(*MINE, 0.0)
    ledger.begin_submit(*MINE, "b", 7, 1500.0)
    assert not other.begin_abort(seen, 2000.0)
    (seen,) = other.pending_aborts(*MINE, 0.0)
    assert other.begin_abort(seen, 2000.0)
    assert not other.begin_abort(seen, 2000.0)
    assert noted(ledger) == [("b", 7, "giving_up", 2000.0)]


def test_pending_aborts_come_with_those_that_are_due_first(ledger):
    ledger.record_abort(*MINE, "later", 1, 3000.0)
    ledger.record_abort(*MINE, "now", 3, 1500.0)
    ledger.begin_submit(*MINE, "before", 2, 1000.0)
    assert [pending.name for pending in ledger.pending_aborts(*MINE, 2000.0)] == [
        "before",
        "now",
        "later",
    ]


def test_two_batches_of_one_name_are_two_pending_aborts(ledger):
    ledger.record_abort(*MINE, "b", 1, 0.0)
    ledger.record_abort(*MINE, "b", 2, 0.0)
    ledger.abort_done(*MINE, 1)
    assert [pending.project_batch_id for pending in ledger.pending_aborts(*MINE, 0.0)] == [2]


def test_a_file_that_others_can_read_is_closed_to_them(path):
    path.parent.mkdir(parents=True)
    path.touch()
    path.chmod(0o644)
    Ledger(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_authenticator_is_in_the_file(ledger):
    secret = "a11ce000000000000000000000000001"
    account = Authenticator(secret).account
    ledger.record_aborted(URL, account, ["job"], "b")
    ledger.begin_submit(URL, account, "b", 7, 1000.0)
    ledger.close()
    for file in ledger.path.parent.iterdir():
        assert secret.encode() not in file.read_bytes()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a ledger, but long enough to have a header " * 10)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a ledger: move it away"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_file_where_the_directory_should_be_names_the_setting(tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(LedgerError, match=r"\[state\]"):
        Ledger(tmp_path / "state" / "ledger.sqlite")


NO_ROOM = """
import resource, sys
from pathlib import Path
from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.ledger import Ledger
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file may grow, as on a full disk
try:
    Ledger(Path(sys.argv[1]))
except LedgerError as error:
    print(error)
"""


@pytest.mark.processes
def test_a_full_disk_is_reported_at_once(path):
    # Within the time that it waits for another process's lock.
    ended = subprocess.run(
        [sys.executable, "-c", NO_ROOM, str(path)],
        capture_output=True,
        text=True,
        timeout=BUSY_TIMEOUT * 0.8,
        check=True,
    )
    assert "cannot be opened" in ended.stdout
    assert "check the disk's free space" in ended.stdout


def test_a_network_file_system_is_refused_with_the_setting_to_change(tmp_path, monkeypatch):
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(f"1 0 0:1 / {tmp_path} rw - nfs4 server:/home rw\n")
    found = partial(network_filesystem, mountinfo=mountinfo)
    monkeypatch.setattr("boinc_gahp.ledger.store.network_filesystem", found)
    with pytest.raises(LedgerError, match=r"network file system \(nfs4\).*set dir in .*\[state\]"):
        Ledger(tmp_path / "state" / "ledger.sqlite")
    assert not (tmp_path / "state").exists()
