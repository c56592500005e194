"""Remembers which outputs were put in place, so that a repeated fetch leaves them alone.

It is a cache: if it cannot be used, outputs are fetched again.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from boinc_gahp.errors import StagingError
from boinc_gahp.submit.cache_file import CacheFile
from boinc_gahp.submit.digests import md5_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

#: Keys in one statement, fewer than any SQLite allows.
_MOST_KEYS = 500

#: Values are JSON: of a file its size, time, inode and MD5; of a directory that was made, its
#: inode. They are forgotten after 30 days.
_SCHEMA = """
create table if not exists placed (
    key blob primary key,
    value text not null,
    at real not null
) without rowid;
delete from placed where at < strftime('%s', 'now') - 30 * 86400;
"""


class PlacedFiles:
    """Outputs that were put in place: where, with length and MD5. Thread-safe; never fails.

    Keys are sequences of strings, such as project, account, instance, output, destination; those of
    files and directories differ in length.

    Args:
        cache_dir: the user's cache directory; None: nothing is remembered.
    """

    def __init__(self, cache_dir: Path | None) -> None:
        path = None if cache_dir is None else cache_dir / "placed.sqlite"
        self._cache = CacheFile(path, _SCHEMA)
        #: Directories that this process made, and their inodes.
        self._made: dict[bytes, int] = {}

    def close(self) -> None:
        """Close the file."""
        self._cache.close()

    def still_there(self, keys: Mapping[Path, Sequence[str]]) -> dict[Path, int]:
        """Return those of the destinations whose file is still there, unchanged; with its size.

        Args:
            keys: the key of each file, by its destination.
        """
        files: dict[bytes, tuple[Path, os.stat_result]] = {}
        for destination, parts in keys.items():
            with suppress(OSError):
                status = destination.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    files[_key(parts)] = destination, status
        there = {}
        wanted = list(files)
        for at in range(0, len(wanted), _MOST_KEYS):
            for key, value in self._look_up(wanted[at : at + _MOST_KEYS]):
                destination, status = files[key]
                if _is_it(destination, status, value):
                    there[destination] = status.st_size
        return there

    def remember(self, files: Sequence[tuple[Sequence[str], os.stat_result, str]]) -> None:
        """Note that files were put in place: the key of each, its status there, and its MD5."""
        self._insert(
            (_key(key), (status.st_size, status.st_mtime_ns, status.st_ino, md5))
            for key, status, md5 in files
        )

    def made(self, key: Sequence[str], status: os.stat_result) -> None:
        """Note that a directory was made for a job: its key, and its status."""
        self._made[_key(key)] = status.st_ino
        self._insert([(_key(key), status.st_ino)])

    def is_made(self, key: Sequence[str], status: os.stat_result) -> bool:
        """Return whether a directory is the one that was made for a job."""
        inode = self._made.get(_key(key))
        if inode is None:
            rows = self._look_up([_key(key)])
            inode = rows[0][1] if rows else None
        return inode == status.st_ino

    def _look_up(self, keys: Sequence[bytes]) -> list[tuple[bytes, Any]]:
        """Return the keys that there are, with their values."""
        which = f"select key, value from placed where key in ({', '.join('?' * len(keys))})"  # noqa: S608
        none: list[tuple[bytes, str]] = []
        rows = self._cache.use(lambda database: database.execute(which, keys).fetchall(), none)
        return [(key, json.loads(value)) for key, value in rows]

    def _insert(self, noted: Iterable[tuple[bytes, object]]) -> None:
        rows = [(key, json.dumps(value), time.time()) for key, value in noted]
        insert = "insert or replace into placed values (?, ?, ?)"
        if rows:
            self._cache.use(lambda database: database.executemany(insert, rows), None)


def _is_it(path: Path, status: os.stat_result, row: Sequence[object]) -> bool:
    size, mtime_ns, inode, md5 = row
    if status.st_size != size:
        return False
    try:
        is_same = (status.st_mtime_ns, status.st_ino) == (mtime_ns, inode)
        return is_same or md5_of(str(path))[0] == md5
    except StagingError:
        return False


def _key(parts: Sequence[str]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(os.fsencode(part) + b"\0")
    return digest.digest()
