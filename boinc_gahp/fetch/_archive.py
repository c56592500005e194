"""Archives from the network, read defensively: what holds for all kinds of them, and for zip."""

from __future__ import annotations

import io
import lzma
import stat
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Generic, TypeVar

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.placements import below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self

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

#: What a kind of archive knows about a file in it.
Info = TypeVar("Info")


class Archive(ABC, Generic[Info]):
    """The files in an archive, by their checked names; a context manager.

    A name is a path below a directory (:func:`~boinc_gahp.fetch.placements.below`); no name
    is there twice, or is the directory of another; every member is a file or a directory.

    Args:
        what: its description, for error messages.
        max_files: the most members that it may have, with their directories.
        max_bytes: the most bytes that may be extracted in all, whatever sizes it declares.
    """

    #: What is raised when a member is damaged.
    trouble: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, what: str, *, max_files: int, max_bytes: int) -> None:
        self._what = what
        self._max_files = max_files
        self._left = max_bytes
        self._max_bytes = max_bytes
        self._files: dict[str, Info] = {}
        self._directories: dict[str, None] = {}

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files, in the archive's order."""
        return tuple(self._files)

    @property
    def directories(self) -> tuple[str, ...]:
        """Names of the directories that the archive lists."""
        return tuple(self._directories)

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return name in self._files

    def is_executable(self, name: str) -> bool:  # noqa: ARG002
        """Return whether the archive says that a file may be executed by its owner."""
        return False

    def check(self, names: Iterable[str]) -> None:
        """Read files to know about damage before they are extracted; errors are the same."""
        for name in names:
            self.extract(name, lambda _: None)
        self._left = self._max_bytes

    def extract(self, name: str, write: Callable[[bytes], object]) -> None:
        """Pass a file's contents to ``write``, in pieces; its checksum is checked if it has one.

        Raises:
            OutputError: it is damaged, or more was extracted in all than is allowed.
        """
        try:
            for data in self._contents(self._files[name]):
                self._left -= len(data)
                if self._left < 0:
                    raise self._too_large()
                write(data)
        except self.trouble as error:
            raise OutputError(f"{self._what}: member {name!r} is damaged: {error}") from error

    def close(self) -> None:
        """Release what it holds; the file itself is the caller's."""

    @abstractmethod
    def _contents(self, info: Info) -> Iterator[bytes]:
        """Yield a file's contents in pieces."""

    def _take(self, members: Iterable[tuple[str, bool, Info]]) -> None:
        """Check members: the name of each, whether it is a directory, and what is known about it.

        Raises:
            OutputError: something is refused.
        """
        for number, (told, is_directory, info) in enumerate(members):
            # One may be the archive's own top directory. All count, also those that come again.
            if number > self._max_files:
                raise self._too_many()
            name = below(told)
            if name is None:
                raise self._refused(f"its member {told!r} is not a path below a directory")
            if not name:
                continue  # the archive's own top directory
            if name in self._files or (name in self._directories and not is_directory):
                raise self._refused(f"it has two members called {name!r}")
            if is_directory:
                self._directories[name] = None
            else:
                self._files[name] = info
        # The members of a directory come right after it.
        ordered = sorted(
            (*self._files, *self._directories), key=lambda name: name.replace("/", "\0")
        )
        for one, other in pairwise(ordered):
            if other.startswith(f"{one}/") and one in self._files:
                raise self._refused(f"its member {one!r} is both a file and a directory")
        if _count(ordered, self._max_files) > self._max_files:
            raise self._too_many()

    def _too_large(self) -> OutputError:
        return self._refused(
            f"its contents are larger than {self._max_bytes} bytes "
            "(unzip_max_bytes in the section [jobs])"
        )

    def _too_many(self) -> OutputError:
        return self._refused(f"it has more than {self._max_files} members")

    def _refused(self, why: str) -> OutputError:
        return OutputError(f"{self._what} is not unpacked: {why}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


class ZipArchive(Archive[zipfile.ZipInfo]):
    """The files in a zip archive.

    Args:
        file: the archive, a real file; the caller closes it.
        what: its description, for error messages.
        max_files: the most members that it may have, with their directories.
        max_bytes: the most bytes that may be extracted in all, whatever sizes it declares.

    Raises:
        OutputError: the archive is damaged, or contains something that is refused.
    """

    trouble = _TROUBLE

    def __init__(self, file: BinaryIO, what: str, *, max_files: int, max_bytes: int) -> None:
        super().__init__(what, max_files=max_files, max_bytes=max_bytes)
        try:
            watched = _Watched(file, max_files)
            self._zip = zipfile.ZipFile(watched)
            watched.watching = False
        except (*_TROUBLE, OSError) as error:
            raise OutputError(f"{what} is not a readable zip archive: {error}") from error
        try:
            self._take(self._listed())
        except BaseException:
            self._zip.close()
            raise

    def close(self) -> None:
        """Release what it holds."""
        self._zip.close()

    def _contents(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        with self._zip.open(info) as file:
            while data := file.read(_CHUNK):
                yield data

    def _listed(self) -> Iterator[tuple[str, bool, zipfile.ZipInfo]]:
        for info in self._zip.infolist():
            # The upper half is the file's mode if the archive was made on Unix.
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                what = "a link" if kind == stat.S_IFLNK else "not a regular file"
                raise self._refused(f"its member {info.filename!r} is {what}")
            yield info.filename, info.is_dir(), info


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
