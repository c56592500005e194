"""Directories that outputs go to: opened with care about links, made, and synced to the disk."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError
from boinc_gahp.files import open_below, open_directory, sync

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boinc_gahp.fetch.cancel import CancelScope
    from boinc_gahp.files import Make

    HasNew = Callable[[int], object]

__all__ = ["make_directories", "open_directory", "open_made", "open_parent", "sync"]


def check_directory(path: str) -> None:
    """Refuse a job's directory that does not exist, before it is made for one of the files.

    If its file system is not mounted, all files would go below the mount point.

    Raises:
        OutputError: it is no directory, or it cannot be looked at.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError as error:
        raise OutputError(
            f"the job's directory {path!r} cannot be used: {error.strerror}"
        ) from error
    if not stat.S_ISDIR(mode):
        raise OutputError(f"the job's directory {path!r} is not a directory")


def make_directories(path: Path, scope: CancelScope) -> None:
    """Make a directory and its missing parents, and sync them to the disk.

    Raises:
        OSError: one cannot be made.
    """
    os.close(open_made(path, scope))


def open_made(path: Path, scope: CancelScope, has_new: HasNew = sync) -> int:
    """Return a descriptor, for use as ``dir_fd``, of a directory that is made as above."""
    return open_directory(path, make=_making(scope, has_new))


def open_parent(
    file: Path, scope: CancelScope, inside: Path | None = None, has_new: HasNew = sync
) -> int:
    """Return a descriptor, for use as ``dir_fd``, of the directory for a file.

    Args:
        file: the file's path.
        scope: is entered for each directory that is made.
        inside: the directory below which the path consists of names from the network: missing
            directories there are made, and links are not followed.
        has_new: called with the descriptor of each directory in which another one was made.

    Raises:
        OutputError: there is a link below ``inside``.
        OSError: the directory cannot be opened or made.
    """
    if inside is None:
        return open_directory(file.parent)
    at = open_directory(inside)
    where = inside
    try:
        for name in file.relative_to(inside).parts[:-1]:
            where /= name
            below = _below(at, name, where, _making(scope, has_new))
            os.close(at)
            at = below
    except BaseException:
        os.close(at)
        raise
    return at


def _below(at: int, name: str, where: Path, make: Make) -> int:
    try:
        return open_below(at, name, make)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and where.is_symlink():
            raise OutputError(
                f"{str(where)!r} is a symbolic link, and the project chose its name, so "
                "boinc_gahp does not write through it: remove the link, or choose another "
                "directory for the outputs"
            ) from error
        raise


def _making(scope: CancelScope, has_new: HasNew) -> Make:
    def make(name: str, at: int) -> None:
        with scope:
            os.mkdir(name, dir_fd=at)
        has_new(at)

    return make
