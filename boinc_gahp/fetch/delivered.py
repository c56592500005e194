"""Remembers which outputs were delivered, so that a repeated fetch leaves them alone.

It is a cache in the user's cache directory: if it cannot be used, outputs are fetched again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import stat
import threading
import time
from typing import TYPE_CHECKING, Any

from boinc_gahp.files import check_private_file, make_private_directory
from boinc_gahp.ledger import network_filesystem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

log = logging.getLogger("boinc_gahp.fetch")

#: Seconds after which deliveries are forgotten.
_KEEP = 30 * 86400.0
_CHUNK = 1 << 20
#: Keys in one statement, fewer than any SQLite allows.
_MOST_KEYS = 500

_SCHEMA = """
create table if not exists delivered (
    key blob primary key,
    size integer not null,
    mtime_ns integer not null,
    inode integer not null,
    md5 text not null,
    at real not null
) without rowid;
create table if not exists archive (
    key blob primary key,
    members text not null,
    at real not null
) without rowid;
"""


class Delivered:
    """Outputs that were delivered: where to, with length and MD5. Thread-safe; never fails.

    Keys are tuples of strings: project, account, instance, output, destination.

    Args:
        cache_dir: the user's cache directory; None: nothing is remembered.
    """

    def __init__(self, cache_dir: Path | None) -> None:
        self._path = None if cache_dir is None else cache_dir / "delivered.sqlite"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._forget()

    def still_there(self, keys: Mapping[Path, Sequence[str]]) -> frozenset[Path]:
        """Return those of the destinations whose delivered file is still there, unchanged.

        Args:
            keys: the key of each file, by its destination.
        """
        destinations = {_key(key): destination for destination, key in keys.items()}
        found = []
        wanted = list(destinations)
        for at in range(0, len(wanted), _MOST_KEYS):
            some = wanted[at : at + _MOST_KEYS]
            found += self._read(
                "select key, size, mtime_ns, inode, md5 from delivered where key in "  # noqa: S608
                f"({', '.join('?' * len(some))})",
                some,
            )
        return frozenset(
            destination
            for key, *row in found
            if _is_unchanged(destination := destinations[key], *row)
        )

    def remember(self, files: Iterable[tuple[Sequence[str], os.stat_result, str]]) -> None:
        """Note that files were delivered: the key of each, its status there, and its MD5."""
        now = time.time()
        self._write(
            "insert or replace into delivered values (?, ?, ?, ?, ?, ?)",
            [
                (_key(key), status.st_size, status.st_mtime_ns, status.st_ino, md5, now)
                for key, status, md5 in files
            ],
        )

    def members(self, key: Sequence[str]) -> tuple[str, ...] | None:
        """Return the names of the files in an archive that was delivered, or None."""
        rows = self._read("select members from archive where key = ?", [_key(key)])
        return tuple(json.loads(str(rows[0][0]))) if rows else None

    def remember_members(self, key: Sequence[str], names: Sequence[str]) -> None:
        """Note which files an archive has."""
        row = _key(key), json.dumps(names), time.time()
        self._write("insert or replace into archive values (?, ?, ?)", [row])

    def _read(self, statement: str, keys: Sequence[bytes]) -> list[Any]:
        found: list[Any] = []

        def read(connection: sqlite3.Connection) -> None:
            found.extend(connection.execute(statement, keys))

        self._use(read)
        return found

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Execute a statement for each row, in one transaction."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("begin immediate")
            connection.executemany(statement, rows)
            connection.execute("commit")

        if rows:
            self._use(write)

    def _use(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Call ``work`` with the connection if there is one; after an error, there is none."""
        with self._lock:
            if self._path is None:
                return
            try:
                if self._connection is None:
                    self._connection = _open(self._path)
                work(self._connection)
            except (sqlite3.Error, OSError) as error:
                log.warning(
                    "The record of delivered outputs, %s, is not used: %s", self._path, error
                )
                self._forget()

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._path = None


def _open(path: Path) -> sqlite3.Connection:
    make_private_directory(path.parent)
    check_private_file(path)
    kind = network_filesystem(path.parent)
    if kind is not None:
        raise OSError(f"it is on a network file system ({kind})")
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    try:
        path.chmod(0o600)  # before there are WAL files: they get the same mode
        connection.execute("pragma journal_mode = wal")
        # Entries lost in a power failure only mean another fetch.
        connection.execute("pragma synchronous = normal")
        connection.executescript(_SCHEMA)
        for table in ("delivered", "archive"):
            connection.execute(f"delete from {table} where at < ?", (time.time() - _KEEP,))  # noqa: S608
    except BaseException:
        connection.close()
        raise
    return connection


def _is_unchanged(path: Path, size: int, mtime_ns: int, inode: int, md5: str) -> bool:
    try:
        status = path.stat(follow_symlinks=False)
        if status.st_size != size or not stat.S_ISREG(status.st_mode):
            return False
        return (status.st_mtime_ns, status.st_ino) == (mtime_ns, inode) or _md5(path) == md5
    except OSError:
        return False


def _key(parts: Sequence[str]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(os.fsencode(part) + b"\0")
    return digest.digest()


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
