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
from typing import TYPE_CHECKING

from boinc_gahp.files import check_private_file, make_private_directory
from boinc_gahp.ledger import network_filesystem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

log = logging.getLogger("boinc_gahp.fetch")

#: Seconds after which deliveries are forgotten.
_KEEP = 30 * 86400.0
_CHUNK = 1 << 20

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

    def is_there(self, key: Sequence[str], destination: Path) -> bool:
        """Return whether the file delivered to ``destination`` is still there, unchanged."""
        row = self._one("select size, mtime_ns, inode, md5 from delivered where key = ?", key)
        if row is None:
            return False
        size, mtime_ns, inode, md5 = row
        try:
            status = destination.stat(follow_symlinks=False)
            if status.st_size != size or not stat.S_ISREG(status.st_mode):
                return False
            if (status.st_mtime_ns, status.st_ino) == (mtime_ns, inode):
                return True
            return _md5(destination) == md5
        except OSError:
            return False

    def remember(self, key: Sequence[str], status: os.stat_result, md5: str) -> None:
        """Note that a file was delivered; ``status`` as it is at its destination."""
        self._run(
            "insert or replace into delivered values (?, ?, ?, ?, ?, ?)",
            (_key(key), status.st_size, status.st_mtime_ns, status.st_ino, md5, time.time()),
        )

    def members(self, key: Sequence[str]) -> tuple[str, ...] | None:
        """Return the names of the files in an archive that was delivered, or None."""
        row = self._one("select members from archive where key = ?", key)
        return None if row is None else tuple(json.loads(str(row[0])))

    def remember_members(self, key: Sequence[str], names: Sequence[str]) -> None:
        """Note which files an archive has."""
        self._run(
            "insert or replace into archive values (?, ?, ?)",
            (_key(key), json.dumps(names), time.time()),
        )

    def _one(self, statement: str, key: Sequence[str]) -> tuple[object, ...] | None:
        rows = self._run(statement, (_key(key),))
        return rows[0] if rows else None

    def _run(self, statement: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        with self._lock:
            if self._path is None:
                return []
            try:
                if self._connection is None:
                    self._connection = _open(self._path)
                return self._connection.execute(statement, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                log.warning(
                    "The record of delivered outputs, %s, is not used: %s", self._path, error
                )
                self._forget()
                return []

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
