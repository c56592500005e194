"""Directories that outputs go to: made where they may be, and put on the disk."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.bridge.gate import Gate

#: A directory that can be written but not read cannot be opened for this, and some file systems
#: have no such thing: a file's own fsync is all that there is then.
_CANNOT = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EROFS}


def sync_directory(path: Path) -> None:
    """Put the names in a directory on the disk, where the file system can.

    Raises:
        OSError: the disk failed, the directory is gone, ...
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def make_directories(path: Path, gate: Gate) -> None:
    """Make a directory and those above it that are missing, and put them on the disk.

    Raises:
        OSError: one cannot be made.
    """
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path.parent == path:
            break
        path = path.parent
    for directory in reversed(missing):
        with gate:
            directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)
