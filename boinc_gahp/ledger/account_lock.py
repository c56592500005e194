"""Decides which process manages an account: works on its jobs on a project."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import threading
import weakref
from typing import TYPE_CHECKING

from boinc_gahp.config import ProjectUrl
from boinc_gahp.errors import BadRequest, LedgerError
from boinc_gahp.files import NotOurs, make_private_directory, open_private_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


#: The locks that this process holds.
_held: weakref.WeakSet[AccountLock] = weakref.WeakSet()


def renew_locks(state_dir: Path) -> None:
    """Make the files of the locks that this process holds again, if they were deleted.

    This is for a deleted state directory, while no other process can have taken over.

    Raises:
        LedgerError: a lock's file cannot be created, or another process holds it.
    """
    for lock in list(_held):
        if lock.path.parent == state_dir:
            lock.renew()


class AccountLock:
    """A lock on a file in the state directory; the kernel frees it when its process ends.

    Thread-safe. Two of these exclude each other within one process, too. All addresses of a project
    have the same lock. 0.1.0 had a file for each address; existing ones are locked, too, since a
    daemon of that version may still run.

    Args:
        state_dir: where the ledger is.
        url: the project's URL.
        account: the account (:attr:`Authenticator.account`).

    Raises:
        LedgerError: by every method: the lock's file cannot be opened.
    """

    def __init__(self, state_dir: Path, url: str, account: str) -> None:
        self.path, *earlier = (
            state_dir / f"keeper-{_digest(each, account)}.lock" for each in _spellings(url)
        )
        self._earlier = tuple(earlier)
        self._guard = threading.Lock()
        self._descriptors: list[int] = []

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return bool(self._descriptors)

    def try_acquire(self) -> bool:
        """Take the lock unless another holds it; return whether this object holds it."""
        with self._guard:
            if self._descriptors:
                return True
            held: list[int] = []
            try:
                for descriptor in self._open_all(make=True):
                    held.append(descriptor)
                    if not _lock(descriptor, fcntl.LOCK_EX):
                        return False
                self._sign(held[0])
                self._descriptors, held = held, []
                _held.add(self)
            finally:
                _close(held)
            return True

    def held_elsewhere(self) -> bool:
        """Return whether another process (or object) holds the lock now; creates no file."""
        with self._guard:
            if self._descriptors:
                return False
            opened: list[int] = []
            try:
                for descriptor in self._open_all(make=False):
                    opened.append(descriptor)
                    # Shared, so that two processes that only check do not disturb each other.
                    if not _lock(descriptor, fcntl.LOCK_SH):
                        return True
            finally:
                _close(opened)
            return False

    def holder(self) -> int | None:
        """Return the id of the process that last took the lock, for people; None if unknown."""
        for path in (self.path, *self._earlier):
            try:
                return int(path.read_text("ascii"))
            except (OSError, ValueError):
                continue
        return None

    def taken(self) -> float | None:
        """Return when the lock was last taken, in seconds since the epoch; None if unknown."""
        for path in (self.path, *self._earlier):
            try:
                return path.stat().st_mtime
            except OSError:
                continue
        return None

    def release(self) -> None:
        """Release the lock; does nothing if this object does not hold it."""
        with self._guard:
            _close(self._descriptors)
            self._descriptors = []
            _held.discard(self)

    def renew(self) -> None:
        """Lock the file that has the lock's name now; for :func:`renew_locks`."""
        with self._guard:
            if not self._descriptors or self.path.exists():
                return
            descriptor = self._open(self.path)
            if not _lock(descriptor, fcntl.LOCK_EX):
                os.close(descriptor)
                raise LedgerError(f"the lock {self.path} is held by another process")
            self._sign(descriptor)
            self._descriptors.append(descriptor)

    def _open_all(self, *, make: bool) -> Iterator[int]:
        """Yield the file, created if ``make`` is set, and those of earlier versions."""
        for path in (self.path, *self._earlier):
            if (make and path is self.path) or path.exists():
                yield self._open(path)

    def _open(self, path: Path) -> int:
        try:
            make_private_directory(path.parent)
            return open_private_file(path, os.O_RDWR | os.O_CREAT)
        except NotOurs as error:
            raise LedgerError(
                f"the lock {path} cannot be opened: {error}; or set another dir in the "
                "section [state]"
            ) from error
        except OSError as error:
            raise LedgerError(
                f"the lock {path} cannot be opened: {error.strerror}; check the directory, "
                "or set another dir in [state]"
            ) from error

    def _sign(self, descriptor: int) -> None:
        """Write this process's id into the file, so that people can read it; ignore errors."""
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            pass


def _digest(url: str, account: str) -> str:
    return hashlib.sha256(f"{url}\0{account}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _spellings(url: str) -> tuple[str, ...]:
    """Return the addresses of a project under which its lock may be; the current one first."""
    try:
        usual = ProjectUrl(url)
    except BadRequest:
        return (url,)
    shared = tuple(f"{scheme}:{usual.identity}" for scheme in ("https", "http"))
    if re.search(r":[0-9]+\Z", usual.host):
        return shared
    path = usual.identity.removeprefix(f"//{usual.host}")
    return (*shared, f"https://{usual.host}:443{path}", f"http://{usual.host}:80{path}")


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
