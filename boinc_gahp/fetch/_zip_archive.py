"""Zip archives from the network."""

from __future__ import annotations

import io
import lzma
import stat
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, BinaryIO

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch._archive import Archive

if TYPE_CHECKING:
    from collections.abc import Iterator

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
