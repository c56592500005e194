"""Zip archives from the network, read defensively."""

from __future__ import annotations

import io
import lzma
import stat
import struct
import zipfile
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.names import below

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_CHUNK = 1 << 20

#: APPNOTE.TXT, 4.3.12: how a member's entry in the list begins, its size without its names, and
#: the offset of their lengths.
_ENTRY = b"PK\x01\x02"
_ENTRY_SIZE, _ENTRY_LENGTHS = 46, 28
#: In bytes: the average size that honest entries hardly exceed, and a list's size that is always
#: allowed.
_LARGE_ENTRY, _LEAST = 640, 1 << 20

_TROUBLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,  # a compression method that Python lacks
    RuntimeError,  # encrypted
    UnicodeError,
    ValueError,
)


class Archive:
    """The files in an archive, by their checked names; a context manager.

    A name is a path below a directory (:func:`~boinc_gahp.fetch.names.below`); no name
    is there twice, or is the directory of another; every member is a file or a directory.

    Args:
        file: the archive, a real file; the caller closes it.
        what: its description, for error messages.
        max_files: the most members that it may have, with their directories.
        max_bytes: the most bytes that may be extracted in all, whatever sizes it declares.

    Raises:
        OutputError: the archive is damaged, or contains something that is refused.
    """

    def __init__(self, file: BinaryIO, what: str, *, max_files: int, max_bytes: int) -> None:
        self._what = what
        self._left = max_bytes
        self._max_bytes = max_bytes
        try:
            watched = _Watched(file, max_files)
            self._zip = zipfile.ZipFile(watched)
            watched.watching = False
        except (*_TROUBLE, OSError) as error:
            raise OutputError(f"{what} is not a readable zip archive: {error}") from error
        try:
            self._members = self._checked(max_files)
        except BaseException:
            self._zip.close()
            raise

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files, in the archive's order."""
        return tuple(name for name, info in self._members.items() if not info.is_dir())

    @property
    def directories(self) -> tuple[str, ...]:
        """Names of the directories that the archive lists."""
        return tuple(name for name, info in self._members.items() if info.is_dir())

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return name in self._members and not self._members[name].is_dir()

    def extract(self, name: str, write: Callable[[bytes], object]) -> None:
        """Pass a file's contents to ``write``, in pieces; its checksum is checked.

        Raises:
            OutputError: it is damaged, or more was extracted in all than is allowed.
        """
        try:
            with self._zip.open(self._members[name]) as file:
                while data := file.read(_CHUNK):
                    self._left -= len(data)
                    if self._left < 0:
                        raise self._refused(
                            f"its contents are larger than {self._max_bytes} bytes "
                            "(unzip_max_bytes in the section [jobs])"
                        )
                    write(data)
        except _TROUBLE as error:
            raise OutputError(f"{self._what}: member {name!r} is damaged: {error}") from error

    def _checked(self, max_files: int) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            # The upper half is the file's mode if the archive was made on Unix.
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                what = "a link" if kind == stat.S_IFLNK else "not a regular file"
                raise self._refused(f"its member {info.filename!r} is {what}")
            name = below(info.filename)
            if name is None:
                raise self._refused(f"its member {info.filename!r} is not a path below a directory")
            if not name:
                continue  # the archive's own top directory
            if name in members and not (info.is_dir() and members[name].is_dir()):
                raise self._refused(f"it has two members called {name!r}")
            members[name] = info
        # The members of a directory come right after it.
        ordered = sorted(members, key=lambda name: name.replace("/", "\0"))
        for one, other in pairwise(ordered):
            if other.startswith(f"{one}/") and not members[one].is_dir():
                raise self._refused(f"its member {one!r} is both a file and a directory")
        if _count(ordered, max_files) > max_files:
            raise self._refused(f"it has more than {max_files} members")
        return members

    def _refused(self, why: str) -> OutputError:
        return OutputError(f"{self._what} is not unpacked: {why}")

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._zip.close()


def _count(ordered: list[str], enough: int) -> int:
    """Return how many files and directories sorted paths make, with those in between.

    Counting stops soon after ``enough``.
    """
    count, before = 0, [""]
    for name in ordered:
        if count > enough:
            break
        parts = name.split("/")
        same = 0
        for part, other in zip(parts, before, strict=False):
            if part != other:
                break
            same += 1
        count += len(parts) - same
        before = parts
    return count


class _Watched(io.BufferedReader):
    """A file in which zipfile looks for the list of members; refuses a list that is too long.

    Where zipfile looks, and which of contradicting records it believes, does not matter: this sees
    what it finally reads.
    """

    def __init__(self, file: BinaryIO, max_files: int) -> None:
        super().__init__(io.FileIO(file.fileno(), closefd=False))
        self._file = file  # whose descriptor it is
        self._size = self.seek(0, io.SEEK_END)
        self._max_files = max_files
        self._max_bytes = max(_LEAST, max_files * _LARGE_ENTRY)
        self.watching = True

    def read(self, size: int | None = -1, /) -> bytes:
        """Return what zipfile asks for.

        Raises:
            BadZipFile: it is a list of more members than are allowed.
        """
        if not self.watching:
            return super().read(size)
        left = max(0, self._size - self.tell())
        wanted = left if size is None or size < 0 else min(size, left)
        data = super().read(wanted) if wanted <= self._max_bytes else None
        if data is None or _entries(data, self._max_files) > self._max_files:
            raise zipfile.BadZipFile(f"it has more than {self._max_files} members")
        return data


def _entries(data: bytes, enough: int) -> int:
    """Return how many members a list has; counts up to one more than ``enough``."""
    at = count = 0
    while count <= enough and data.startswith(_ENTRY, at) and at + _ENTRY_SIZE <= len(data):
        at += _ENTRY_SIZE + sum(struct.unpack_from("<HHH", data, at + _ENTRY_LENGTHS))
        count += 1
    return count
