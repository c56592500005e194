"""Temporary files and directories on the disk: made, locked, taken over, removed.

All operations are relative to a descriptor of the parent directory, because others may be able to
write there. Only what this user has left is taken over: a file that has other names, or a directory
without its lock, does not count as that.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.fetch.types import OWN
from boinc_gahp.files import open_directory

if TYPE_CHECKING:
    from pathlib import Path

#: Suffixes of files and of directories.
FILE, DIRECTORY = "part", "unpack"

#: A directory's lock: NFS only locks files that are open for writing, which directories cannot be.
_LOCK = f"{OWN}.lock"

_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, a named pipe would keep the process waiting for its other end.
_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NameTaken(Exception):
    """The name belongs to something that must not be taken over."""


class OwnFile(NamedTuple):
    """An open file or directory that only this process may use.

    Attributes:
        descriptor: of the file, or of the directory.
        lock: descriptor of the locked file: the file itself, or one in the directory.
        sure: whether it is really locked; False on a file system without locks.
    """

    descriptor: int
    lock: int
    sure: bool

    def close(self) -> None:
        """Release it."""
        os.close(self.descriptor)
        if self.lock != self.descriptor:
            os.close(self.lock)

    def is_at(self, name: str, at: int) -> bool:
        """Return whether it has this name in the directory ``at``."""
        return _is_at(self.descriptor, name, at) and (
            self.lock == self.descriptor or _is_at(self.lock, _LOCK, self.descriptor)
        )

    def remove(self, name: str, at: int) -> None:
        """Remove it from the disk."""
        if self.lock == self.descriptor:
            os.unlink(name, dir_fd=at)
        else:
            self.empty()
            os.unlink(_LOCK, dir_fd=self.descriptor)
            os.rmdir(name, dir_fd=at)

    def empty(self) -> None:
        """Remove its contents."""
        if self.lock == self.descriptor:
            os.ftruncate(self.descriptor, 0)
            os.lseek(self.descriptor, 0, os.SEEK_SET)
        else:
            _empty(self.descriptor, keep=_LOCK)


def hold(name: str, at: int, *, make: bool = True) -> OwnFile | None:
    """Return a file, or by its suffix a directory; see below."""
    how = hold_directory if name.endswith(f".{DIRECTORY}") else hold_file
    return how(name, at, make=make)


def hold_file(name: str, at: int, *, make: bool) -> OwnFile | None:
    """Return a file, made or taken over; None if another process has it, or had it until now.

    Raises:
        NameTaken: something else has the name.
        OSError: it cannot be made.
    """
    descriptor = _open_file(name, at, make=make)
    if descriptor is None:
        return None
    sure = _lock(descriptor)
    # Another process may have renamed or removed it before it released the lock.
    if sure is None or not _is_at(descriptor, name, at):
        os.close(descriptor)
        return None
    return OwnFile(descriptor, descriptor, sure)


def hold_directory(name: str, at: int, *, make: bool) -> OwnFile | None:
    """Return a directory in the same way, with mode 700."""
    is_new = make and _make_directory(name, at)
    try:
        descriptor = os.open(name, _READ, dir_fd=at)
    except FileNotFoundError:
        return None
    except OSError as error:
        if is_new:
            raise
        raise NameTaken from error
    try:
        lock = _open_lock(descriptor, is_new=is_new)
    except BaseException:
        os.close(descriptor)
        # A process that was killed before it made the lock has left an empty directory; this does
        # not remove any other.
        with suppress(OSError):
            os.rmdir(name, dir_fd=at)
        raise
    sure = _lock(lock)
    held = OwnFile(descriptor, lock, bool(sure))
    if sure is None or not held.is_at(name, at):
        held.close()
        return None
    return held


def _open_lock(directory: int, *, is_new: bool) -> int:
    if is_new:
        try:
            return os.open(_LOCK, _WRITE | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
        except FileNotFoundError as error:
            raise NameTaken from error  # removed by another process: it was empty
    status = os.fstat(directory)
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise NameTaken
    try:
        return os.open(_LOCK, _WRITE, dir_fd=directory)
    except OSError as error:
        raise NameTaken from error


def sweep(directory: Path) -> None:
    """Remove the temporary files that a killed daemon left in a directory; never fails.

    Files that a fetch is using are left alone; without locks on the file system, all are.
    """
    with suppress(OSError):
        at = open_directory(directory)
        try:
            sweep_at(at)
        finally:
            os.close(at)


def sweep_at(at: int) -> None:
    """Do the same in an open directory."""
    with suppress(OSError):
        inside = os.open(".", _READ, dir_fd=at)
        try:
            names = os.listdir(inside)  # noqa: PTH208  (takes a descriptor)
        finally:
            os.close(inside)
        for name in names:
            if name.startswith(f"{OWN}-"):
                with suppress(OSError, NameTaken):
                    _sweep(name, at)


def _sweep(name: str, at: int) -> None:
    kind = PurePath(name).suffix.removeprefix(".")
    if kind not in (FILE, DIRECTORY):
        return
    held = hold(name, at, make=False)
    if held is not None:
        try:
            if held.sure:
                held.remove(name, at)
        finally:
            held.close()


def _open_file(name: str, at: int, *, make: bool) -> int | None:
    if make:
        with suppress(FileExistsError):
            return os.open(name, _WRITE | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=at)
    try:
        descriptor = os.open(name, _WRITE, dir_fd=at)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NameTaken from error
    status = os.fstat(descriptor)
    ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if not ours or status.st_nlink > 1:
        os.close(descriptor)
        raise NameTaken
    return descriptor


def _make_directory(name: str, at: int) -> bool:
    try:
        os.mkdir(name, 0o700, dir_fd=at)
    except FileExistsError:
        return False
    return True


def _lock(descriptor: int) -> bool | None:
    """Try to lock a file; return True if that succeeded, None if another process has locked it.

    The result is False on a file system without locks (some NFS). There, two daemons of one user
    could fetch the same job at the same moment; nothing else could go wrong.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError:
        return False
    return True


def _is_at(descriptor: int, name: str, at: int) -> bool:
    """Return whether an open file has this name."""
    try:
        named = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), named)


def _empty(directory: int, keep: str | None = None) -> None:
    """Remove the contents of a directory, at all depths; links are not followed."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if is_directory:
            below = os.open(name, _READ, dir_fd=directory)
            try:
                _empty(below)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=directory)
        elif name != keep:
            os.unlink(name, dir_fd=directory)
