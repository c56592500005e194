"""The project's database: SQLite, one writer at a time, readers never wait.

One process uses it; each thread has its own connection. The schema (``schema.sql``) is numbered
(``PRAGMA user_version``); a database of another number is refused.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING

from boinc_gahp.localproject.errors import LocalProjectTrouble, with_advice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Changes with schema.sql: a project is for experiments, and a new one is made in a second.
SCHEMA_VERSION = 10


# NORMAL with a write-ahead log survives the end of the process at any point; only a power cut may
# lose the last transactions. Checkpoints take most time: do them after 8,000 pages, not 1,000.
_SETTINGS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 8000;
PRAGMA foreign_keys = ON;
"""


class Database:
    """Connections and transactions.

    Raises:
        LocalProjectTrouble: it is of another version, or not a database of this program.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._registry_lock = threading.Lock()
        self._write_lock = threading.Lock()
        try:
            # It holds authenticators; files that SQLite puts beside it get the same mode.
            if not path.exists():
                path.touch(mode=0o600)
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise LocalProjectTrouble(f"{path} cannot be opened: {with_advice(error)}") from error

    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection, in autocommit mode."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(
                self.path, timeout=30, isolation_level=None, check_same_thread=False
            )
            try:
                connection.row_factory = sqlite3.Row
                connection.executescript(_SETTINGS)
                connection.create_function("clock", 0, time.time)
            except BaseException:
                connection.close()
                raise
            self._local.connection = connection
            with self._registry_lock:
                self._connections.append(connection)
        return connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run the body in one write transaction: all of it happens, or nothing.

        Raises:
            sqlite3.OperationalError: it could not be written, as on a full disk.
        """
        connection = self.connection()
        with self._write_lock:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # On a full disk SQLite may already have rolled back.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Run the body on one snapshot."""
        connection = self.connection()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close all connections; no thread may use the database after that."""
        with self._registry_lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        self._local = threading.local()

    def _prepare(self) -> None:
        """Make the tables of a new database; refuse one of another version."""
        connection = self.connection()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            self.close()
            raise LocalProjectTrouble(
                f"{self.path} was made by another version of boinc_gahp (its schema is {version}, "
                f"this one's {SCHEMA_VERSION}): use that version, or make a new project in another "
                "directory (boinc_gahp local-project init)"
            )
        if version == 0:
            script = (resources.files(__package__) / "schema.sql").read_text("utf-8")
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;"
            )
