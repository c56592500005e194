"""Temporary files on the disk, and directories beside them: made, locked, removed.

All operations are relative to a descriptor of the parent directory, because others may be able to
write there. Only what this user has left is removed: a file that has other names, or a directory
without its mark, does not count as that.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.fetch.types import OWN
from boinc_gahp.files import open_directory

if TYPE_CHECKING:
    from pathlib import Path

#: The suffix of files; the name of a directory is that of its file, with a random part after it. A
#: file is locked for both: NFS only locks files that are open for writing.
SUFFIX = ".part"
#: A file that each directory has.
_MARK = f"{OWN}.room"

_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, a named pipe would keep the process waiting for its other end.
_WRITE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class OwnFile(NamedTuple):
    """An open file that only this process may use.

    Attributes:
        name: its name in its directory.
        descriptor: of the file.
        sure: whether it is really locked; False on a file system without locks.
    """

    name: str
    descriptor: int
    sure: bool


def new_file(at: int) -> OwnFile:
    """Return a new file in a directory, under a name that nobody can foresee; raises OSError."""
    while True:
        name = f"{OWN}-{secrets.token_hex(8)}{SUFFIX}"
        flags = _WRITE | os.O_CREAT | os.O_EXCL
        held = _held(name, os.open(name, flags, 0o666, dir_fd=at), at)
        if held is not None:  # or else another process has just swept it
            return held


def make_room(file: str, at: int) -> str:
    """Return the name of a new directory beside a file, with mode 700; raises OSError."""
    name = f"{file}.{secrets.token_hex(8)}"
    os.mkdir(name, 0o700, dir_fd=at)
    directory = os.open(name, _READ, dir_fd=at)
    try:
        os.close(os.open(_MARK, _WRITE | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory))
    finally:
        os.close(directory)
    return name


def remove_room(name: str, at: int) -> None:
    """Remove such a directory, with what is in it; another one is left alone. Raises OSError."""
    # A process that was killed before it made the mark has left an empty one.
    with suppress(OSError):
        os.rmdir(name, dir_fd=at)
        return
    directory = os.open(name, _READ, dir_fd=at)
    try:
        status = os.fstat(directory)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return
        os.stat(_MARK, dir_fd=directory, follow_symlinks=False)
        _empty(directory, keep=_MARK)
        os.unlink(_MARK, dir_fd=directory)
    finally:
        os.close(directory)
    os.rmdir(name, dir_fd=at)


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
        found = [name for name in names if name.startswith(f"{OWN}-") and SUFFIX in name]
        for file in {name[: name.index(SUFFIX)] + SUFFIX for name in found}:
            with suppress(OSError):
                _sweep(file, at, [name for name in found if name.startswith(f"{file}.")])


def _sweep(file: str, at: int, rooms: list[str]) -> None:
    descriptor = os.open(file, _WRITE, dir_fd=at)
    status = os.fstat(descriptor)
    ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if not ours or status.st_nlink > 1:
        os.close(descriptor)
        return
    held = _held(file, descriptor, at)
    if held is not None:
        try:
            if held.sure:
                for room in rooms:
                    with suppress(OSError):
                        remove_room(room, at)
                os.unlink(file, dir_fd=at)
        finally:
            os.close(held.descriptor)


def _held(name: str, descriptor: int, at: int) -> OwnFile | None:
    """Lock an open file; None, and it is closed, if another process has it, or had it until now."""
    sure = _lock(descriptor)
    if sure is not None:
        # Another process may have renamed or removed it before it released the lock. None gives
        # another file this name.
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=at, follow_symlinks=False)
            return OwnFile(name, descriptor, sure)
    os.close(descriptor)
    return None


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
