"""Input directories: what is in them, and whether they are still as they were."""

from __future__ import annotations

import errno
import os
import stat
import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

from boinc_gahp.errors import StagingError
from boinc_gahp.submit.digests import SETTLED, Seen, check_link, stat_file, unreadable
from boinc_gahp.submit.singleflight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The most files and directories in an input directory.
MOST_ENTRIES = 100_000

#: A directory is not looked through again for so many times the time that this takes, and for at
#: most so many seconds: 10,000 jobs may share one.
_REST, _LONGEST_REST = 20.0, 2.0
#: So many directories are remembered.
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory or symbolic link in a directory.

    Attributes:
        name: its path below the directory; empty for the directory itself.
        path: its path on the disk.
        kind: what it is; a link that is followed is what it leads to.
        seen: what a file looked like; None for the others.
        executable: whether a file's owner may execute it.
        target: where a link leads; empty for the others.
    """

    name: str
    path: str
    kind: Literal["directory", "file", "link"]
    seen: Seen | None = None
    executable: bool = False
    target: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory at one moment.

    Attributes:
        stamp: a digest of its files' names, sizes, times of modification and permission to execute.
        nbytes: of its files.
        identity: a digest that also tells it from a directory of the same stamp, by inodes and
            times of change. If it changed so recently that it may change again within the same tick
            of the file system's clock, no other has this identity.
        until: ``time.monotonic()`` until which it is not looked at again.
    """

    stamp: str
    nbytes: int
    identity: str
    until: float


def walk(path: str) -> list[Entry]:
    """Return a directory and all that is in it, or a file, sorted by the parts of their names.

    A symbolic link stays one if it is relative, without ``..``: then it cannot lead out of the
    directory, and busybox's tar unpacks it, too. What another link leads to is there in its place.

    Args:
        path: absolute; bytes that are not UTF-8 as surrogates (PEP 383).

    Raises:
        StagingError: something in it is neither a file nor a directory, or cannot be read; a link
            leads back to a directory that holds it; or there are more than ``MOST_ENTRIES``.
    """
    found: list[Entry] = []
    todo: list[tuple[str, str, tuple[tuple[int, int], ...]]] = [("", path, ())]
    while todo:
        name, where, above = todo.pop()
        if len(found) >= MOST_ENTRIES:
            raise StagingError(
                f"input directory {path!r} holds more than {MOST_ENTRIES:,} files and directories: "
                "pack them into an archive, and name that",
                path=path,
                errno=errno.E2BIG,
            )
        try:
            status = os.lstat(where)
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink(where)  # noqa: PTH115
                if name and _stays_below(target):
                    found.append(Entry(name, where, "link", target=target))
                    continue
                check_link(where)
                status = os.stat(where)  # noqa: PTH116  (bytes that are not UTF-8)
            if stat.S_ISDIR(status.st_mode):
                found.append(Entry(name, where, "directory"))
                here = (status.st_dev, status.st_ino)
                if here in above:
                    raise StagingError(
                        f"input {where!r} is a symbolic link to a directory that it is in itself: "
                        "remove the link",
                        path=where,
                        errno=errno.ELOOP,
                    )
                names = sorted(os.listdir(where), key=os.fsencode, reverse=True)  # noqa: PTH208
                todo += [
                    (f"{name}/{each}" if name else each, f"{where}/{each}", (*above, here))
                    for each in names
                ]
                continue
        except (OSError, ValueError) as error:
            raise unreadable(where, error) from error
        status = stat_file(where)
        executable = bool(status.st_mode & stat.S_IXUSR)
        found.append(Entry(name, where, "file", Seen.of(status), executable))
    return found


def _stays_below(target: str) -> bool:
    return not target.startswith("/") and ".." not in target.split("/")


def look(path: str) -> Tree:
    """Return the state of a directory with all that is in it, or of a file.

    Threads that ask at the same time look through it once; the answer is up to 2 s old. Raises as
    :func:`walk`.
    """
    return _trees.get(path, lambda: _look(path), lambda tree: time.monotonic() < tree.until)


def tree_stamp(path: str) -> str:
    """Return a digest that changes when a directory's files, their sizes or times change.

    It does not change with inodes: a directory that was restored from a backup is the same. It is
    stable between processes. The answer is up to 2 s old; raises as :func:`walk`.
    """
    return look(path).stamp


def tree_bytes(path: str) -> int:
    """Return the bytes of a directory's files; see :func:`tree_stamp`."""
    return look(path).nbytes


def _look(path: str) -> Tree:
    began, now = time.monotonic(), time.time_ns()
    entries = walk(path)
    ended = time.monotonic()
    stamp = stamp_of(entries)
    files = [each.seen for each in entries if each.seen is not None]
    settled = all(now - file.ctime_ns > SETTLED for file in files)
    identity = _digest(
        [
            (stamp, None if settled else os.urandom(8)),
            *((file.inode, file.ctime_ns) for file in files),
        ]
    )
    nbytes = sum(file.size for file in files)
    return Tree(stamp, nbytes, identity, ended + min(_REST * (ended - began), _LONGEST_REST))


def stamp_of(entries: Sequence[Entry]) -> str:
    """Return the stamp of a directory that was just looked through."""
    return _digest(
        (
            each.name,
            each.kind,
            each.seen and (each.seen.size, each.seen.mtime_ns),
            each.executable,
            each.target,
        )
        for each in entries
    )


def _digest(values: Iterable[object]) -> str:
    found = blake2b(digest_size=16)
    for value in values:
        # Of repr, what is escaped depends on the version of Python.
        found.update(ascii(value).encode())
    return found.hexdigest()


_trees: SingleFlight[str, Tree] = SingleFlight(_REMEMBERED)
