"""Files that this program makes itself so that they can be staged.

A container job's Dockerfile and script, and archives of its input directories. They are in a
private directory under names that depend on their contents (an archive's on the state of what is
packed, which need not be read for this), are there once however many jobs need them, and are
removed when no job has needed them for long.
"""

from __future__ import annotations

import errno
import logging
import os
import tarfile
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.errors import StagingError
from boinc_gahp.files import make_private_directory, whole_file
from boinc_gahp.submit.checks import extension
from boinc_gahp.submit.digests import Seen, reason, unreadable
from boinc_gahp.submit.singleflight import SingleFlight
from boinc_gahp.submit.trees import Entry, Tree, look, stamp_of, walk
from boinc_gahp.submit.types import LocalFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

log = logging.getLogger("boinc_gahp.submit")

_CHUNK = 1 << 20
#: A use is recorded again after so many seconds: each time, the file's MD5 is computed again.
_RECORD_AGAIN = 3600.0
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


class Member(NamedTuple):
    """A file or directory that goes into an archive, with all that is in it.

    Attributes:
        name: its name in the archive, relative and without ``..``. Empty: what is in the directory
            ``path`` is put at the top.
        path: its absolute path; bytes that are not UTF-8 as surrogates (PEP 383).
        stamp: that of :func:`~boinc_gahp.submit.trees.look` that it has to have; otherwise it is
            not packed. None: it is packed as it is.
    """

    name: str
    path: str
    stamp: str | None = None

    def is_as_expected(self, stamp: str) -> bool:
        """Return whether what has this stamp may be packed."""
        return self.stamp in (None, stamp)

    def look(self) -> Tree:
        """Return its state; an older one only if that is the expected one."""
        return look(self.path, may_be_old=lambda tree: self.is_as_expected(tree.stamp))


class GeneratedFiles:
    """Made files in one directory; safe between threads and between processes.

    Args:
        directory: is made when it is needed, for this user alone. Nothing else may be in it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._packing: SingleFlight[str, None] = SingleFlight(1)

    @classmethod
    def of(cls, state_dir: Path) -> GeneratedFiles:
        """Return the files of a state directory, which is that of the ledger."""
        return cls(state_dir / "made")

    def is_made(self, path: str) -> bool:
        """Return whether a path is that of a made file, or of their directory."""
        return Path(path).is_relative_to(self._directory)

    def write(self, name: str, content: bytes) -> LocalFile:
        """Return a file of this content.

        Args:
            name: gives its physical name the extension.
            content: all of it.

        Raises:
            StagingError: it cannot be written.
        """
        digest = blake2b(content, digest_size=16).hexdigest()
        path = self._directory / f"{digest}{extension(name)}"
        try:
            # A machine that lost its power may have left an empty file.
            if not (self._use(path) and path.read_bytes() == content):
                make_private_directory(self._directory)
                with whole_file(path, 0o600) as file:
                    file.write(content)
        except OSError as error:
            raise self._unwritten(error) from error
        return LocalFile(path)

    def pack(
        self, members: Sequence[Member], keep_going: Callable[[], None] = lambda: None
    ) -> LocalFile:
        """Return a tar archive of files and directories; it is made once for equal ones.

        Equal names and contents give equal bytes: members are sorted, of the year 1970 and of user
        0, and have the mode 755 if they are directories or their owner may execute them, else 644.
        The format is GNU's, in which GNU's tar and busybox's read names and sizes of any length.
        What becomes of symbolic links: see :func:`~boinc_gahp.submit.trees.walk`.

        Args:
            members: a later one replaces files of the same name.
            keep_going: called after each piece of up to 1 MiB; raises to stop. Threads that wait
                for the same archive get that error, too.

        Raises:
            StagingError: a member cannot be packed, changes meanwhile, or is not as expected; two
                have the same name; or the archive cannot be written.
            ValueError: a member's name is absolute or has ``..``.
        """
        for member in members:
            if member.name.startswith("/") or ".." in member.name.split("/"):
                raise ValueError(f"not a name for an archive's member: {member.name!r}")
        looks = [(member.name, member.look()) for member in members]
        for member, (_, tree) in zip(members, looks, strict=True):
            _check_expected(member, tree.stamp)
        key = ascii([(name, tree.identity) for name, tree in looks])
        path = self._directory / f"{blake2b(key.encode(), digest_size=16).hexdigest()}.tar"

        def pack() -> None:
            if not self._use(path):
                make_private_directory(self._directory)
                # Without a sync, a machine that loses its power may leave a part of it.
                with (
                    suppress(FileExistsError),
                    whole_file(path, 0o600, replace=False, durable=True) as file,
                ):
                    file.writelines(_tar(members, keep_going))

        try:
            self._packing.get(path.name, pack, lambda _: False)
        except OSError as error:
            raise self._unwritten(error) from error
        return LocalFile(path)

    def clean(self, older_than: float) -> int:
        """Remove files that were not used for long, and killed processes' own; return how many.

        A file that is removed all the same just before it is sent is made again with the next
        attempt.

        Args:
            older_than: in seconds.
        """
        number = 0
        try:
            with os.scandir(self._directory) as found:
                for entry in found:
                    status = entry.stat(follow_symlinks=False)
                    unused = time.time() - max(status.st_atime, status.st_mtime)
                    if unused > older_than + _RECORD_AGAIN:
                        os.unlink(entry.path)  # noqa: PTH108
                        number += 1
        except FileNotFoundError:  # there are none, or another process cleans, too
            pass
        except OSError as error:
            log.warning("Unneeded files in %s cannot be removed: %s", self._directory, error)
        return number

    def _use(self, path: Path) -> bool:
        """Return whether a file is there, and record that it is used.

        The time of its last access is set, not that of its last change: by that, somebody who reads
        it now would see that it has changed.
        """
        try:
            status = path.stat()
            if time.time() - max(status.st_atime, status.st_mtime) > _RECORD_AGAIN:
                os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
        except FileNotFoundError:
            return False
        return True

    def _unwritten(self, error: OSError) -> StagingError:
        path = str(self._directory)
        remedy = "; free some space there" if error.errno in _NO_ROOM else ""
        return StagingError(
            f"the files that boinc_gahp makes for container jobs cannot be written to {path!r}: "
            f"{reason(error)}{remedy}",
            path=path,
            errno=error.errno or 0,
        )


def _check_expected(member: Member, stamp: str) -> None:
    if not member.is_as_expected(stamp):
        raise StagingError(
            f"input {member.path!r} changed since the job was submitted: submit it again",
            path=member.path,
        )


def _tar(members: Sequence[Member], keep_going: Callable[[], None]) -> Iterator[bytes]:
    """Yield an archive in pieces; raises as :meth:`GeneratedFiles.pack`, but no OSError."""
    trees = [walk(member.path) for member in members]
    for member, entries in zip(members, trees, strict=True):
        _check_expected(member, stamp_of(entries))
    size = 0
    for name, entry in _named(members, trees):
        for piece in _packed(name, entry):
            yield piece
            size += len(piece)
            keep_going()
    # Two empty blocks, and as many as fill a record.
    yield bytes(2 * tarfile.BLOCKSIZE + -(size + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE)
    for member, entries in zip(members, trees, strict=True):
        if stamp_of(walk(member.path)) != stamp_of(entries):
            raise _changed(member.path)


def _named(members: Sequence[Member], trees: Sequence[Sequence[Entry]]) -> list[tuple[str, Entry]]:
    """Return all entries by their names in the archive, each directory before what is in it."""
    found: dict[str, Entry] = {}
    for member, entries in zip(members, trees, strict=True):
        for entry in entries:
            name = "/".join(part for part in (member.name.rstrip("/"), entry.name) if part)
            if not name and entry.kind != "directory":
                raise ValueError(f"a file needs a name in an archive: {entry.path!r}")
            earlier = found.get(name, entry)
            if (earlier.kind == "directory") != (entry.kind == "directory"):
                raise _same_name(earlier, entry)
            if name:
                found[name] = entry
    for name, entry in found.items():
        for end in (position for position, each in enumerate(name) if each == "/"):
            above = found.get(name[:end])
            if above is not None and above.kind != "directory":
                raise _same_name(above, entry)
    return sorted(found.items(), key=lambda item: os.fsencode(item[0]).split(b"/"))


def _same_name(one: Entry, other: Entry) -> StagingError:
    return StagingError(
        f"inputs {one.path!r} and {other.path!r} would have the same name in the job's directory: "
        "rename one",
        path=other.path,
    )


def _packed(name: str, entry: Entry) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)  # its other values are those that are wanted
    info.mode = 0o755 if entry.executable or entry.kind == "directory" else 0o644
    info.linkname = entry.target
    if entry.seen is None:
        info.type = tarfile.SYMTYPE if entry.kind == "link" else tarfile.DIRTYPE
    else:
        info.size = entry.seen.size
    yield info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    if entry.seen is None:
        return
    read = 0
    try:
        with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123
            is_same = Seen.of(os.fstat(file.fileno())) == entry.seen
            while is_same and (piece := file.read(_CHUNK)):
                yield piece
                read += len(piece)
                is_same = read <= info.size
            is_same = is_same and Seen.of(os.fstat(file.fileno())) == entry.seen
    except OSError as error:
        raise unreadable(entry.path, error) from error
    if not is_same or read != info.size:
        raise _changed(entry.path)
    yield bytes(-read % tarfile.BLOCKSIZE)


def _changed(path: str) -> StagingError:
    return StagingError(
        f"input {path!r} changed while it was read: submit it again", path=path, passes=True
    )
