"""Tar archives from the network."""

from __future__ import annotations

import logging
import os
import posixpath
import stat
import tarfile
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch._archive import Archive
from boinc_gahp.fetch.placements import below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

log = logging.getLogger("boinc_gahp.fetch")

_CHUNK = 1 << 20
_BLOCK = tarfile.BLOCKSIZE
_END = bytes(_BLOCK)

_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
#: Headers that tell more about the member after them. One member has at most three: a long name and
#: a long target (GNU), or an extended header (POSIX).
_EXTENSIONS = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE)
_MOST_EXTENSIONS = 3
#: The most bytes of one: it may have a file's extended attributes beside a path.
_LONGEST_EXTENSION = 1 << 20
#: Bytes that all names may have together: an average that honest ones hardly exceed, and a sum that
#: is always allowed.
_LONG_NAME, _LEAST = 640, 1 << 20
#: Records of extended headers for each file that an archive may have: honest ones have some ten.
_RECORDS = 30
#: The most links that lead to one file.
_MOST_LINKS = 40


class _File(NamedTuple):
    """A file in the archive: where it begins, and its size in bytes.

    A symbolic link has a target instead.
    """

    at: int
    size: int
    is_executable: bool
    target: str | None = None


class TarArchive(Archive[_File]):
    """The files in a tar archive without compression.

    A hard link is a file with the contents of the member that it leads to; so is a symbolic link if
    it leads to a file in the archive, or else it is left out. Headers are parsed one by one here,
    because TarFile of the standard library reads a header of any length into memory, and takes an
    archive that was cut between two members for a complete one.

    Args:
        file: the archive, a real file; the caller closes it.
        what: its description, for error messages.
        max_files: the most members that it may have, with their directories.
        max_bytes: the most bytes that may be extracted in all, whatever sizes it declares.

    Raises:
        OutputError: the archive is damaged, or contains something that is refused.
    """

    trouble = (tarfile.TarError, ValueError)

    def __init__(self, file: BinaryIO, what: str, *, max_files: int, max_bytes: int) -> None:
        super().__init__(what, max_files=max_files, max_bytes=max_bytes)
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        try:
            self._take(self._listed())
        except (tarfile.TarError, ValueError, OSError) as error:
            raise OutputError(f"{what} is not a readable tar archive: {error}") from error
        self._follow()

    def is_executable(self, name: str) -> bool:
        """Return whether the archive says that a file may be executed by its owner."""
        return name in self._files and self._files[name].is_executable

    def check(self, names: Iterable[str]) -> None:
        """Look at the sizes: there are no checksums, and the headers are known to be whole."""
        if sum(self._files[name].size for name in names) > self._max_bytes:
            raise self._too_large()

    def _contents(self, info: _File) -> Iterator[bytes]:
        self._file.seek(info.at)
        left = info.size
        while left:
            data = self._file.read(min(left, _CHUNK))
            if not data:
                raise tarfile.ReadError("it ends too soon")
            left -= len(data)
            yield data

    def _listed(self) -> Iterator[tuple[str, bool, _File]]:
        left = max(_LEAST, self._max_files * _LONG_NAME)
        for info, at in self._headers():
            left -= len(info.name) + len(info.linkname)
            if left < 0:
                raise self._refused("its members' names are too long")
            is_executable = bool(info.mode & stat.S_IXUSR)
            file = _File(at, info.size, is_executable)
            if info.type == tarfile.LNKTYPE:
                original = self._files.get(below(info.linkname) or "")
                if original is None or original.target is not None:
                    raise self._refused(
                        f"its member {info.name!r} is a link to {info.linkname!r}, which is not a "
                        "file before it"
                    )
                file = original
            elif info.type == tarfile.SYMTYPE:
                file = _File(at, 0, is_executable, info.linkname)
            elif info.type not in (*_FILES, tarfile.DIRTYPE):
                raise self._refused(f"its member {info.name!r} is not a regular file")
            yield info.name, info.type == tarfile.DIRTYPE, file

    def _headers(self) -> Iterator[tuple[tarfile.TarInfo, int]]:
        """Yield each member, and where its contents begin."""
        at, extensions, more = 0, 0, dict[str, str]()
        records = max(_LEAST, self._max_files * _RECORDS)
        while (block := self._read(at, _BLOCK)) != _END:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            at += _BLOCK
            size = info.size
            if info.type in _EXTENSIONS:
                extensions += 1
                if extensions > _MOST_EXTENSIONS or size > _LONGEST_EXTENSION:
                    raise tarfile.ReadError("a member's name is too long")
                told = list(_told(info, self._read(at, size)))
                records -= len(told)
                if records < 0:
                    raise self._refused("its members' extended headers are too long")
                more |= _names(told)
            else:
                info.name = more.get("path", info.name)
                info.linkname = more.get("linkpath", info.linkname)
                size = info.size = int(more.get("size", size))
                if info.type in _FILES:
                    self._check(at, size)
                else:
                    size = 0
                yield info, at
                extensions, more = 0, {}
            at += -(-size // _BLOCK) * _BLOCK
        if more:
            raise tarfile.ReadError("it ends too soon")

    def _read(self, at: int, size: int) -> bytes:
        self._check(at, size)
        self._file.seek(at)
        return self._file.read(size)

    def _check(self, at: int, size: int) -> None:
        if size < 0 or at + size > self._size:
            raise tarfile.ReadError("it ends too soon")

    def _follow(self) -> None:
        """Have symbolic links to files in the archive be such files, and leave out the others."""
        links = {
            name: posixpath.normpath(posixpath.join(posixpath.dirname(name), file.target))
            for name, file in self._files.items()
            if file.target is not None
        }
        found = {name: self._target(name, links) for name in links}
        for name, target in found.items():
            if target is None:
                del self._files[name]
            else:
                self._files[name] = target
        lost = [name for name, target in found.items() if target is None]
        if lost:
            log.warning(
                "%s: %r and %d other symbolic links are left out: they do not lead to a file in it",
                self._what,
                lost[0],
                len(lost) - 1,
            )

    def _target(self, name: str, links: Mapping[str, str]) -> _File | None:
        for _ in range(_MOST_LINKS):
            if name not in links:
                return self._files.get(name)
            name = links[name]
        return None


def _told(info: tarfile.TarInfo, data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what an extension tells, as the records of an extended header."""
    if info.type == tarfile.XHDTYPE:
        return _records(data)
    key = b"path" if info.type == tarfile.GNUTYPE_LONGNAME else b"linkpath"
    return iter([(key, data.partition(b"\0")[0])])


def _names(records: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return a member's ``path``, ``linkpath`` and ``size``, as far as records have them."""
    return {
        key.decode(): value.decode("utf-8", "surrogateescape")
        for key, value in records
        if key in (b"path", b"linkpath") or (key == b"size" and value.isdigit())
    }


def _records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of an extended header (POSIX, "pax Extended Header").

    Raises:
        ReadError: they are damaged, or describe a sparse file.
    """
    at = 0
    while at < len(data):
        length = data[at : at + 12].partition(b" ")[0]
        end = at + int(length) if length.isdigit() else 0
        record = data[at + len(length) + 1 : end]
        key, equals, value = record.removesuffix(b"\n").partition(b"=")
        if end > len(data) or not equals or not record.endswith(b"\n"):
            raise tarfile.ReadError("an extended header is damaged")
        if key.startswith(b"GNU.sparse."):
            raise tarfile.ReadError("it has a sparse file: have tar write whole files")
        yield key, value
        at = end
