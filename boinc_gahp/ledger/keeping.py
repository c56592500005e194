"""Decides which process works on a project's jobs: the keeper, one per project and account."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from typing import TYPE_CHECKING

from boinc_gahp.config.ownership import NotOurs, make_private_directory, open_private_file
from boinc_gahp.errors import LedgerError

if TYPE_CHECKING:
    from pathlib import Path


class KeeperLock:
    """A lock on a file in the state directory; the kernel frees it when its process dies.

    Thread-safe. Two of these exclude each other within one process, too.

    Args:
        state_dir: where the ledger is.
        url: the project's URL.
        account: the account (:attr:`Authenticator.account`).

    Raises:
        LedgerError: by every method: the lock's file cannot be opened.
    """

    def __init__(self, state_dir: Path, url: str, account: str) -> None:
        digest = hashlib.sha256(f"{url}\0{account}".encode("utf-8", "surrogateescape")).hexdigest()
        self.path = state_dir / f"keeper-{digest[:16]}.lock"
        self._guard = threading.Lock()
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds it."""
        return self._descriptor is not None

    def try_acquire(self) -> bool:
        """Take the lock, or leave it to whoever has it; tell whether this object holds it."""
        with self._guard:
            if self._descriptor is not None:
                return True
            descriptor = self._open()
            if not _lock(descriptor, fcntl.LOCK_EX):
                os.close(descriptor)
                return False
            self._descriptor = descriptor
            self._sign(descriptor)
            return True

    def held_elsewhere(self) -> bool:
        """Tell whether another process (or object) holds it at this moment."""
        with self._guard:
            if self._descriptor is not None:
                return False
            descriptor = self._open()
            try:
                # Shared, so that two that only ask do not get in each other's way.
                return not _lock(descriptor, fcntl.LOCK_SH)
            finally:
                os.close(descriptor)

    def holder(self) -> int | None:
        """Return the id of the process that last took it, for people; None if that is not known."""
        try:
            return int(self.path.read_text("ascii"))
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        """Let others have it; does nothing if this object does not hold it."""
        with self._guard:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _open(self) -> int:
        try:
            make_private_directory(self.path.parent)
            return open_private_file(self.path, os.O_RDWR | os.O_CREAT)
        except NotOurs as error:
            raise LedgerError(
                f"the lock {self.path} cannot be opened: {error}; or set another dir in the "
                "section [state]"
            ) from error
        except OSError as error:
            raise LedgerError(
                f"the lock {self.path} cannot be opened: {error.strerror}; check the directory, "
                "or set another dir in [state]"
            ) from error

    def _sign(self, descriptor: int) -> None:
        """Write this process's id into the file, for people; a full disk is no reason to stop."""
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
