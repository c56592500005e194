"""Decides which process manages an account: works on its jobs on a project."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.config.urls import url_identity
from boinc_gahp.errors import LedgerError
from boinc_gahp.files import make_private_directory, open_private_file
from boinc_gahp.ledger.opening import explain

if TYPE_CHECKING:
    from pathlib import Path


class AccountLock:
    """A lock on a file in the state directory; the kernel frees it when its process ends.

    Thread-safe. Two of these exclude each other within one process, too. All addresses of a project
    have the same lock.

    Args:
        state_dir: where the ledger is.
        url: the project's URL.
        account: the account (:attr:`Authenticator.account`).

    Raises:
        LedgerError: by every method: the lock's file cannot be opened.
    """

    def __init__(self, state_dir: Path, url: str, account: str) -> None:
        owner = f"{url_identity(url)}\0{account}".encode("utf-8", "surrogateescape")
        self.path = state_dir / f"account-{hashlib.sha256(owner).hexdigest()[:16]}.lock"
        self._guard = threading.Lock()
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def try_acquire(self) -> bool:
        """Take the lock unless another holds it; return whether this object holds it."""
        with self._guard:
            if self._descriptor is None:
                descriptor = self._open()
                if not _lock(descriptor, fcntl.LOCK_EX):
                    os.close(descriptor)
                    return False
                self._descriptor = descriptor
                # So that people can read it.
                with suppress(OSError):
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return True

    def held_elsewhere(self) -> bool:
        """Return whether another process (or object) holds the lock now; creates no file."""
        with self._guard:
            if self._descriptor is not None or not self.path.exists():
                return False
            descriptor = self._open()
            try:
                # Shared, so that two processes that only check do not disturb each other.
                return not _lock(descriptor, fcntl.LOCK_SH)
            finally:
                os.close(descriptor)

    def holder(self) -> int | None:
        """Return the id of the process that last took the lock, for people; None if unknown."""
        try:
            return int(self.path.read_text("ascii"))
        except (OSError, ValueError):
            return None

    def taken(self) -> float | None:
        """Return when the lock was last taken, in seconds since the epoch; None if unknown."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None

    def release(self) -> None:
        """Release the lock; does nothing if this object does not hold it."""
        with self._guard:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _open(self) -> int:
        try:
            make_private_directory(self.path.parent)
            return open_private_file(self.path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise LedgerError(explain(self.path, "opened", error, "lock")) from error


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
