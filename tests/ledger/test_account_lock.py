"""One manager at a time, and another as soon as it has died."""

import signal
import subprocess
import sys

import pytest

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.account_lock import AccountLock
from tests.helpers import wait_for
from tests.ledger.jobs import ACCOUNT, MINE, URL

HOLDER = """
import subprocess, sys
from pathlib import Path
from boinc_gahp.ledger.account_lock import AccountLock
lock = AccountLock(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
assert lock.try_acquire()
# What it has started must not keep the lock from others.
child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, close_fds=False)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that is the manager, and has a child."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), *MINE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    child = int(process.stdout.readline())
    yield process
    process.kill()
    process.communicate()
    subprocess.run(["kill", str(child)], check=False)


@pytest.mark.processes
def test_another_process_keeps_until_it_is_killed(holder, tmp_path):
    lock = AccountLock(tmp_path, *MINE)
    assert not lock.try_acquire()
    assert lock.held_elsewhere()
    assert lock.holder() == holder.pid
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    wait_for(lock.try_acquire, "the lock")
    assert not lock.held_elsewhere()
    lock.release()


def test_a_lock_that_was_let_go_of_is_anothers(tmp_path):
    first, second = AccountLock(tmp_path, *MINE), AccountLock(tmp_path, *MINE)
    assert first.try_acquire()
    assert first.try_acquire()
    assert first.is_held
    assert not second.try_acquire()
    assert second.held_elsewhere()
    assert not first.held_elsewhere()
    first.release()
    first.release()
    # To ask keeps nobody from it.
    assert not first.held_elsewhere()
    assert not second.held_elsewhere()
    assert second.try_acquire()
    second.release()


def test_projects_and_accounts_are_kept_apart(tmp_path):
    owners = [MINE, (URL, "another"), ("https://elsewhere.example/", ACCOUNT)]
    locks = [AccountLock(tmp_path, *owner) for owner in owners]
    assert [lock.try_acquire() for lock in locks] == [True] * 3
    for lock in locks:
        lock.release()
    assert len(list(tmp_path.iterdir())) == 3


def test_asking_makes_no_file(tmp_path):
    assert not AccountLock(tmp_path / "state", *MINE).held_elsewhere()
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_private_and_tells_no_account(tmp_path):
    lock = AccountLock(tmp_path / "state", *MINE)
    assert lock.holder() is None
    assert lock.try_acquire()
    assert lock.path.stat().st_mode & 0o777 == 0o600
    assert lock.path.parent.stat().st_mode & 0o777 == 0o700
    assert ACCOUNT not in lock.path.name
    lock.release()


def test_a_lock_that_cannot_be_opened_names_the_setting(tmp_path):
    (tmp_path / "file").touch()
    lock = AccountLock(tmp_path / "file", *MINE)
    with pytest.raises(LedgerError, match=r"\[state\]"):
        lock.try_acquire()
