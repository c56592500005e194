"""MD5s of local files: computed in parallel, and cached between runs.

A file is recognised by its absolute path, size, inode, and times of modification and of change: the
former can be set, and ``cp -p`` of another file from the same archive sets it to the same time.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.errors import StagingError
from boinc_gahp.files import check_links
from boinc_gahp.rpc.types import UploadFile
from boinc_gahp.submit.cache_file import CacheFile
from boinc_gahp.submit.checks import extension
from boinc_gahp.submit.journal import Meter
from boinc_gahp.threads import in_parallel

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping, Sequence

_CHUNK = 1 << 20
_LEAST_CHUNK = 1 << 12
#: A file that changed this recently may change again within the same tick of the file system's
#: clock, and would look the same; so its MD5 is not cached. In nanoseconds.
SETTLED = 2_000_000_000
#: The cache is trimmed to about this many files; the least recently used ones go.
_MAX_ROWS = 500_000

_SCHEMA = """
create table if not exists file (
    path blob primary key,
    size integer not null,
    mtime_ns integer not null,
    ctime_ns integer not null,
    inode integer not null,
    md5 text not null,
    used integer not null
) without rowid
"""


@dataclass(frozen=True, slots=True)
class Digest(UploadFile):
    """A file as it was when its MD5 was computed, under its name on the project.

    Attributes:
        mtime_ns: the last change, in ns.
    """

    mtime_ns: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Seen:
    """What tells whether a file is the same as before; times in ns."""

    size: int
    mtime_ns: int
    inode: int
    # It also changes with a file's owner, mode and links, but that is still the same file.
    ctime_ns: int = field(compare=False)

    @classmethod
    def of(cls, status: os.stat_result) -> Seen:
        """Return what identifies a file of this status."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)


def stat_input(path: str) -> os.stat_result:
    """Return the status of an input file.

    Raises:
        StagingError: it is absent, unreadable, not a regular file, or a link that is not followed.
    """
    check_link(path)
    return stat_file(path)


def stat_file(path: str) -> os.stat_result:
    """Return what :func:`stat_input` does, of a path whose links were checked already."""
    try:
        status = os.stat(path)  # noqa: PTH116  (a path may hold bytes that are not UTF-8)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise StagingError(
            f"input file {path!r} is a directory: name the files in it, or an archive",
            path=path,
            errno=errno.EISDIR,
        )
    if not stat.S_ISREG(status.st_mode):
        raise StagingError(
            f"input file {path!r} is not a regular file, so it cannot be staged",
            path=path,
            errno=errno.EINVAL,
        )
    if not os.access(path, os.R_OK):
        raise StagingError(
            f"input file {path!r} cannot be read: permission denied", path=path, errno=errno.EACCES
        )
    return status


def check_link(path: str) -> None:
    """Raise StagingError for a symbolic link that is not followed, or to what looks like a secret.

    One that is not followed is another user's, in a directory that everyone can write. The link
    may be the path itself, or a directory on the way.
    """
    from boinc_gahp.containers.rules import link_to_secret  # noqa: PLC0415  (not for a ping)

    try:
        if os.path.realpath(path) == os.path.abspath(path):  # noqa: PTH100  (it may hold bytes)
            return
        check_links(Path(path))
        target = link_to_secret(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if target is not None:
        raise StagingError(
            f"input {path!r} leads by a symbolic link to {target!r}, which looks as if it held "
            "secrets, and volunteers can read all files of a job: remove the link; or, if that is "
            "meant, name it itself, or put a copy in its place",
            path=path,
            errno=errno.EACCES,
        )


def unreadable(path: str, error: Exception) -> StagingError:
    """Return the error for an input file that cannot be read."""
    number = error.errno if isinstance(error, OSError) else None
    return StagingError(
        f"input file {path!r} cannot be read: {reason(error)}",
        path=path,
        errno=number or errno.EINVAL,
    )


def reason(error: Exception) -> str:
    """Return the operating system's reason, in a few words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


class Digests:
    """MD5s of files, cached in ``digests.sqlite`` in a cache directory."""

    def __init__(self, cache_dir: Path | None) -> None:
        self._path = None if cache_dir is None else cache_dir / "digests.sqlite"

    def md5(self, path: str) -> str:
        """Return the MD5 of a file in hex; raises StagingError."""
        return self.of([path])[path].md5

    def of(
        self,
        paths: Iterable[str],
        keep_going: Callable[[], None] = lambda: None,
        meter: Meter | None = None,
    ) -> Mapping[str, Digest]:
        """Return the files at ``paths``, in this order, hashing those that are not in the cache.

        Args:
            paths: as the job named them; each is opened at most once.
            keep_going: called now and then; raises to stop.
            meter: gets the bytes that are read.

        Raises:
            StagingError: a file is absent, unreadable, not a regular file, or changed meanwhile.
        """
        seen = {path: Seen.of(stat_input(path)) for path in dict.fromkeys(paths)}
        files = {path: (md5, seen[path]) for path, md5 in self._remembered(seen).items()}
        missing = [path for path in seen if path not in files]
        started = time.time_ns()
        meter = meter or Meter()
        meter.begin("reading", sum(seen[path].size for path in missing), "bytes")
        computed = self._compute(missing, keep_going, meter)
        meter.finish()
        self._remember(
            (path, md5, file)
            for path, (md5, file) in computed.items()
            if started - file.mtime_ns > SETTLED
        )
        files |= computed
        # In the order of the paths: whoever stages them again begins with the same ones.
        return {
            path: Digest(md5 + extension(path), path, file.size, md5, file.mtime_ns)
            for path, (md5, file) in ((path, files[path]) for path in seen)
        }

    def _compute(
        self, paths: Sequence[str], keep_going: Callable[[], None], meter: Meter
    ) -> dict[str, tuple[str, Seen]]:
        stop = threading.Event()

        def go_on(count: int) -> None:
            meter.add(count)
            keep_going()
            if stop.is_set():
                raise StagingError("stopped: another file cannot be read")

        return dict(
            in_parallel(
                lambda path: md5_of(path, go_on),
                paths,
                threads=os.cpu_count() or 1,
                name="md5",
                stop=stop,
            )
        )

    def _remembered(self, seen: Mapping[str, Seen]) -> dict[str, str]:
        def work(database: sqlite3.Connection) -> dict[str, str]:
            found: dict[str, str] = {}
            database.execute("begin immediate")  # or else each look-up locks the file
            for path, file in seen.items():
                row = database.execute(
                    "select md5 from file where path = ? and size = ? and mtime_ns = ? "
                    "and ctime_ns = ? and inode = ?",
                    (_key(path), file.size, file.mtime_ns, file.ctime_ns, file.inode),
                ).fetchone()
                if row:
                    found[path] = row[0]
            now = int(time.time())
            database.executemany(
                "update file set used = ? where path = ? and used < ?",
                [(now, _key(path), now - 86400) for path in found],
            )
            return found

        with closing(CacheFile(self._path, _SCHEMA)) as cache:
            return cache.use(work, {})

    def _remember(self, computed: Iterable[tuple[str, str, Seen]]) -> None:
        now = int(time.time())
        rows = [
            (_key(path), file.size, file.mtime_ns, file.ctime_ns, file.inode, md5, now)
            for path, md5, file in computed
        ]

        def work(database: sqlite3.Connection) -> None:
            database.executemany("replace into file values (?, ?, ?, ?, ?, ?, ?)", rows)
            (count,) = database.execute("select count(*) from file").fetchone()
            if count > _MAX_ROWS:
                database.execute(
                    "delete from file where path in (select path from file order by used limit ?)",
                    (count - _MAX_ROWS * 9 // 10,),
                )

        if rows:
            with closing(CacheFile(self._path, _SCHEMA)) as cache:
                cache.use(work, None)


def _key(path: str) -> bytes:
    return os.fsencode(os.path.abspath(path))  # noqa: PTH100  (bytes that are not UTF-8)


def md5_of(path: str, read: Callable[[int], None] = lambda _: None) -> tuple[str, Seen]:
    """Return the MD5 of a file in hex, and the file's state then.

    It is read in pieces of up to 1 MiB. ``read`` is called with the size of each piece; it may
    raise to stop.

    Raises:
        StagingError: it cannot be read, or it changed while it was read.
    """
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            before = Seen.of(os.fstat(file.fileno()))
            # For a small file, to make the buffer of a large one takes longer than to read it.
            buffer = memoryview(bytearray(max(_LEAST_CHUNK, min(_CHUNK, before.size + 1))))
            while count := file.readinto(buffer):
                digest.update(buffer[:count])
                read(count)
            after = Seen.of(os.fstat(file.fileno()))
    except OSError as error:
        raise unreadable(path, error) from error
    if before != after:
        raise changed(path)
    return digest.hexdigest(), after


def changed(path: str) -> StagingError:
    """Return the error for an input file that changed while it was read."""
    return StagingError(
        f"input file {path!r} changed while it was read: submit it again", path=path, passes=True
    )
