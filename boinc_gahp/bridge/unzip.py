"""Zip archives from the network, read defensively."""

from __future__ import annotations

import lzma
import os
import stat
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

_CHUNK = 1 << 20

#: APPNOTE.TXT, 4.3.16 and 4.3.14: the records at an archive's end that count its members.
_END = b"PK\x05\x06"
_END_SIZE = 22
_END64 = b"PK\x06\x06"
_COMMENT = 0xFFFF
#: A member's directory entry without its names (4.3.12), and what an honest one hardly exceeds.
_LARGE_ENTRY = 46 + 4096

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

    A name is relative, uses ``/`` and has no ``..``; no two names are the same, or one the other's
    directory; every member is a file or a directory.

    Args:
        path: the archive.
        what: what it is, for error messages.
        max_files: members that it may have.
        max_bytes: bytes that may be extracted from it in all, however much it declares.

    Raises:
        OutputError: the archive is damaged, or holds something that is refused.
    """

    def __init__(self, path: Path, what: str, *, max_files: int, max_bytes: int) -> None:
        self._what = what
        self._left = max_bytes
        self._max_bytes = max_bytes
        try:
            _check_directory_size(path, max_files)
            self._zip = zipfile.ZipFile(path)
        except (*_TROUBLE, OSError) as error:
            raise OutputError(f"{what} is no zip archive that can be read: {error}") from error
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
        """Hand a file's contents to ``write``, in pieces; its checksum is checked.

        Raises:
            OutputError: it is damaged, or all that was extracted is more than is allowed.
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
        if len(self._zip.infolist()) > max_files:
            raise self._refused(f"it has more than {max_files} members")
        members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            # The upper half is the file's mode where the archive was made on a Unix.
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                what = "a link" if kind == stat.S_IFLNK else "no regular file"
                raise self._refused(f"its member {info.filename!r} is {what}")
            name = self._checked_name(info)
            if not name:
                continue  # the archive's own top directory
            if name in members and not (info.is_dir() and members[name].is_dir()):
                raise self._refused(f"it has two members {name!r}")
            members[name] = info
        files = {name for name, info in members.items() if not info.is_dir()}
        for name in members:
            parent = name.rpartition("/")[0]
            while parent:
                if parent in files:
                    raise self._refused(f"its member {parent!r} is a file and a directory")
                parent = parent.rpartition("/")[0]
        return members

    def _checked_name(self, info: zipfile.ZipInfo) -> str:
        name = info.filename
        # Archives from Windows may have backslashes; as separators they could hide a "..".
        parts = name.replace("\\", "/").split("/")
        if not name or name[0] in "/\\" or ".." in parts or "\0" in name:
            raise self._refused(f"its member {name!r} is no path below a directory")
        return "/".join(part for part in name.split("/") if part not in ("", "."))

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


def _check_directory_size(path: Path, max_files: int) -> None:
    """Refuse an archive whose list of members is too large to be read into memory."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        tail_size = min(size, _END_SIZE + _COMMENT + 128)
        file.seek(size - tail_size)
        tail = file.read(tail_size)
    at = tail.rfind(_END)
    if at < 0 or at + _END_SIZE > len(tail):
        raise zipfile.BadZipFile("it has no end record")
    count, directory = struct.unpack_from("<HL", tail, at + 10)
    at64 = tail.rfind(_END64, 0, at)
    if at64 >= 0 and at64 + 48 <= len(tail):
        count, directory = struct.unpack_from("<QQ", tail, at64 + 32)
    if count > max_files or directory > max_files * _LARGE_ENTRY:
        raise zipfile.BadZipFile(f"it has more than {max_files} members")
