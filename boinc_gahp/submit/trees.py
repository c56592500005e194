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
    from collections.abc import Callable, Collection, Iterable, Sequence

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
        real: its path without symbolic links, those of the directory's own path included.
    """

    name: str
    path: str
    kind: Literal["directory", "file", "link"]
    seen: Seen | None = None
    executable: bool = False
    target: str = ""
    real: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory at one moment.

    Attributes:
        stamp: a digest of its files' names, sizes, times of modification and permission to execute.
        files: how many there are.
        nbytes: of its files.
        identity: a digest that also tells it from a directory of the same stamp, by inodes and
            times of change. If it changed so recently that it may change again within the same tick
            of the file system's clock, no other has this identity.
        until: ``time.monotonic()`` until which it is not looked at again.
        secrets: files and directories in it that look like secrets.
    """

    stamp: str
    files: int
    nbytes: int
    identity: str
    until: float
    secrets: Sequence[str]

    def check(self, named: Collection[str]) -> None:
        """Raise StagingError if something in it looks like a secret.

        Args:
            named: absolute paths that the job names themselves: it means these.
        """
        from boinc_gahp.containers.rules import IF_HARMLESS  # noqa: PLC0415  (not for a ping)

        for path in self.secrets:
            if os.path.normpath(path) not in named:
                raise StagingError(f"input {path!r} {IF_HARMLESS}", path=path, errno=errno.EACCES)


def walk(path: str, *, follow_links: bool = True) -> list[Entry]:
    """Return a directory and all that is in it, or a file, sorted by the parts of their names.

    A symbolic link stays one if it is relative, without ``..``: then it cannot lead out of the
    directory, and busybox's tar unpacks it, too. What another link leads to is there in its place.

    Args:
        path: absolute; bytes that are not UTF-8 as surrogates (PEP 383).
        follow_links: whether links may lead out of the directory. A job is accepted without, unless
            its user says so; afterwards the stamp tells that they are still the same.

    Raises:
        StagingError: something in it is neither a file nor a directory, or cannot be read; a link
            leads back to a directory that holds it, to what may be secret, or out of the directory;
            or there are more than ``MOST_ENTRIES``.
    """
    check_link(path)
    found: list[Entry] = []
    top = os.path.realpath(path)
    todo: list[tuple[str, str, tuple[tuple[int, int], ...]]] = [("", top, ())]
    while todo:
        name, real, above = todo.pop()
        where = f"{path}/{name}" if name else path
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
                    found.append(Entry(name, where, "link", target=target, real=real))
                    continue
                check_link(where)
                real = os.path.realpath(where)
                if not (follow_links or _is_below(top, real)):
                    raise _leads_out(path, where, real)
                status = os.stat(where)  # noqa: PTH116  (bytes that are not UTF-8)
            if stat.S_ISDIR(status.st_mode):
                found.append(Entry(name, where, "directory", real=real))
                here = (status.st_dev, status.st_ino)
                if here in above:
                    raise StagingError(
                        f"input {where!r} is a symbolic link to a directory that it is in itself: "
                        "remove the link",
                        path=where,
                        errno=errno.ELOOP,
                    )
                names = sorted(os.listdir(where), key=os.fsencode, reverse=True)  # noqa: PTH208
                prefix = f"{name}/" if name else ""
                todo += [(prefix + each, f"{real}/{each}", (*above, here)) for each in names]
                continue
        except (OSError, ValueError) as error:
            raise unreadable(where, error) from error
        status = stat_file(where)
        executable = bool(status.st_mode & stat.S_IXUSR)
        found.append(Entry(name, where, "file", Seen.of(status), executable, real=real))
    return found


def _leads_out(path: str, link: str, target: str) -> StagingError:
    return StagingError(
        f"input {link!r} is a symbolic link that leads out of the directory {path!r}, to "
        f"{target!r}, which would be sent to volunteers: remove the link, or, if all such links "
        "are meant, have them followed (--follow-links; in Python follow_links=True; in a submit "
        "file +BoincFollowLinks = true; for Snakemake --boinc-follow-links)",
        path=link,
        errno=errno.EACCES,
    )


def _is_below(top: str, path: str) -> bool:
    return f"{path}/".startswith(f"{top.rstrip('/')}/")


def _stays_below(target: str) -> bool:
    return not target.startswith("/") and ".." not in target.split("/")


def look(
    path: str, *, follow_links: bool = True, may_be_old: Callable[[Tree], bool] = lambda _: True
) -> Tree:
    """Return the state of a directory with all that is in it, or of a file.

    Its stamp does not change with inodes: a directory that was restored from a backup is the same.
    It is stable between processes. Threads that ask at the same time look through it once. Raises
    as :func:`walk`.

    Args:
        path: as for :func:`walk`.
        follow_links: as for :func:`walk`.
        may_be_old: tells whether an answer that is up to 2 s old will do.
    """
    key = (path, follow_links)

    def will_do(tree: Tree) -> bool:
        return time.monotonic() < tree.until and may_be_old(tree)

    return _trees.get(key, lambda: _look(*key), will_do)


def _look(path: str, follow_links: bool) -> Tree:
    from boinc_gahp.containers.rules import secrets_among  # noqa: PLC0415  (not for a ping)

    began, now = time.monotonic(), time.time_ns()
    entries = walk(path, follow_links=follow_links)
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
    return Tree(
        stamp,
        files=len(files),
        nbytes=sum(file.size for file in files),
        identity=identity,
        until=ended + min(_REST * (ended - began), _LONGEST_REST),
        secrets=secrets_among((each.path, each.real) for each in entries),
    )


def stamp_of(entries: Sequence[Entry]) -> str:
    """Return the stamp of a directory that was just looked through.

    It tells where links lead out of the directory: what is there may have the same size and time.
    """
    return _digest(
        (
            each.name,
            each.kind,
            each.seen and (each.seen.size, each.seen.mtime_ns),
            each.executable,
            each.target,
            *(() if _is_below(entries[0].real, each.real) else (each.real,)),
        )
        for each in entries
    )


def _digest(values: Iterable[object]) -> str:
    found = blake2b(digest_size=16)
    for value in values:
        # Of repr, what is escaped depends on the version of Python.
        found.update(ascii(value).encode())
    return found.hexdigest()


_trees: SingleFlight[tuple[str, bool], Tree] = SingleFlight(_REMEMBERED)
