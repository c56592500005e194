"""Notices that the ledger's file was deleted or replaced while a process has it open.

SQLite keeps using a file without a name, and all of it is lost when the process ends. So the
contents are saved under the old name, unless another process has created a file there.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.ledger.account_lock import renew_locks

if TYPE_CHECKING:
    from pathlib import Path

    #: Device and inode.
    Place = tuple[int, int]


def place_of(path: Path) -> Place | None:
    """Return which file has this name now; None if there is none.

    Raises:
        OSError: the file cannot be examined.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def put_back(connection: sqlite3.Connection, path: Path) -> bool:
    """Write everything that a connection sees into a new file of the old name.

    The locks of this process's managers come first, because managers need a ledger.

    Returns:
        Whether it was written: not if another process has created a file of that name.

    Raises:
        OSError, sqlite3.Error, LedgerError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        new.unlink()
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        copy = sqlite3.connect(new, isolation_level=None)
        try:
            connection.backup(copy)
        finally:
            copy.close()
        # They belong to the deleted file, and must not be used with the new one.
        for end in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + end).unlink()
        renew_locks(path.parent)
        try:
            os.link(new, path)
        except FileExistsError:
            return False
        return True
    finally:
        new.unlink()
