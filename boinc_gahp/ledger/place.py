"""Notices that the ledger's file was deleted or replaced under a process that has it open.

SQLite goes on with a file that has no name any more, and all of it is lost with the process. The
name is therefore given back to what is there, as long as nobody has taken it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.ledger.keeping import renew_locks

if TYPE_CHECKING:
    from pathlib import Path

    #: Device and inode.
    Place = tuple[int, int]


def place_of(path: Path) -> Place | None:
    """Return which file has this name now; None if there is none.

    Raises:
        OSError: that cannot be told.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def put_back(connection: sqlite3.Connection, path: Path) -> bool:
    """Write all that a connection sees into a file with the name that it had.

    The locks of this process's keepers come first: nobody can be one without a ledger.

    Returns:
        Whether it is there: not if somebody has made another file of that name meanwhile.

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
        # Of the file that was deleted: not to be taken for the new one's.
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
