"""SQLite files in the user's cache directory: what they hold only saves time."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.files import check_private_file, make_private_directory
from boinc_gahp.ledger.opening import network_filesystem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = logging.getLogger("boinc_gahp.submit")

T = TypeVar("T")


class CacheFile:
    """A file that is opened when it is first used; thread-safe.

    If it cannot be used (no directory, a network file system, a full disk, a damaged or busy file),
    it is as if nothing were in it.

    Args:
        path: the file; None: there is none.
        schema: statements for a file that is opened.
    """

    def __init__(self, path: Path | None, schema: str) -> None:
        has_locks = path is not None and not network_filesystem(path.parent)
        self._path = path if has_locks else None
        self._schema = schema
        #: Connections of parents. SQLite forbids a child to use them, and to close them.
        self._inherited: list[sqlite3.Connection | None] = []
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def use(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Return ``work(database)``, done in a transaction; ``otherwise`` if it cannot be used.

        After an error it is not used any more.
        """
        if os.getpid() != self._process:
            # Another thread may have held the parent's lock: here nobody would release it.
            self._inherited.append(self._connection)
            self._begin()
        with self._lock:
            if self._path is None:
                return otherwise
            try:
                if self._connection is None:
                    self._connection = _open(self._path, self._schema)
                with self._connection:
                    return work(self._connection)
            except (sqlite3.Error, OSError) as error:
                remedy = "; delete it if this lasts" if isinstance(error, sqlite3.Error) else ""
                log.warning("The cache %s is not used: %s%s", self._path, error, remedy)
                self._end()
                return otherwise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._path = None


def _open(path: Path, schema: str) -> sqlite3.Connection:
    make_private_directory(path.parent)
    check_private_file(path)
    connection = sqlite3.connect(
        path, timeout=5.0, isolation_level="IMMEDIATE", check_same_thread=False
    )
    try:
        path.chmod(0o600)  # before there are WAL files: they get the same mode
        connection.execute("pragma journal_mode = wal")
        # What is lost in a power failure is computed or fetched again.
        connection.execute("pragma synchronous = normal")
        connection.executescript(schema)
    except BaseException:
        connection.close()
        raise
    return connection
