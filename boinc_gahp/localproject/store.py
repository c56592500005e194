"""The project's files: inputs in ``download/``, outputs in ``upload/``, in BOINC's layout.

A file is in one of 1,024 directories, named after a hash of its name.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import zlib
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

_FANOUT = 1024
_CHUNK = 1 << 20
#: The window bits for zlib: gzip's header without a time, so the same file gives the same bytes.
_GZIP = 31
#: The MD5 of a larger file is remembered.
_SMALL = 1 << 16
_PHYSICAL = re.compile(r"[A-Za-z0-9_.\- ]{1,255}")


def valid_physical_name(name: str) -> bool:
    """Whether job_file.php accepts a name (``web-rpcs.rst``, "Files"); not if it is a directory."""
    return _PHYSICAL.fullmatch(name) is not None and name.strip(". ") != ""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the store; size in bytes, MD5 in hex."""

    name: str
    path: Path
    md5: str
    nbytes: int


class IncomingFile:
    """A file being received: written to the spool, hashed on the way, never held in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nbytes = 0
        self._hash = hashlib.md5(usedforsecurity=False)
        self._file = path.open("xb")
        self._moved = False

    def write(self, data: bytes) -> None:
        """Append ``data``."""
        self._file.write(data)
        self._hash.update(data)
        self.nbytes += len(data)

    def copy(self, source: BinaryIO, *, packed: bool = False) -> None:
        """Append all that a file has; ``packed``: compressed with gzip."""
        packer = zlib.compressobj(9, wbits=_GZIP) if packed else None
        while chunk := source.read(_CHUNK):
            self.write(packer.compress(chunk) if packer else chunk)
        if packer:
            self.write(packer.flush())

    def finish(self) -> str:
        """Close the file and return its MD5."""
        self._file.close()
        return self._hash.hexdigest()

    def move(self, path: Path) -> None:
        """Move the finished file to its place; nobody changes it there."""
        self.path.chmod(0o444)
        try:
            self.path.replace(path)
        except FileNotFoundError:  # the first file of its directory
            path.parent.mkdir(parents=True, exist_ok=True)
            self.path.replace(path)
        self._moved = True

    def discard(self) -> None:
        """Close and remove it, unless it has been moved into the store."""
        if self._moved:
            return
        with suppress(OSError):  # data that could not be written before cannot be now either
            self._file.close()
        self.path.unlink(missing_ok=True)


class FileStore:
    """One tree of files (``download`` or ``upload``) and the spool beside it."""

    def __init__(self, root: Path, spool: Path) -> None:
        self.root = root
        self._spool = spool
        self._lock = threading.Lock()
        self._known: dict[str, tuple[tuple[int, int], str]] = {}

    def path(self, name: str) -> Path:
        """Return the path of a file with that name.

        Raises:
            ValueError: the name could lead out of the store.
        """
        if "/" in name or "\0" in name or name in {"", ".", ".."}:
            raise ValueError(f"bad file name {name!r}")
        return self.root / f"{directory_of(name)}/{name}"

    def incoming(self) -> IncomingFile:
        """Return a new file in the spool."""
        return IncomingFile(self._spool / secrets.token_hex(16))

    def clear_spool(self) -> None:
        """Remove half-received files of a process that was killed."""
        for path in self._spool.iterdir():
            path.unlink()

    def find(self, name: str) -> StoredFile | None:
        """Return a stored file, or None if it is not there."""
        try:
            path = self.path(name)
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._known.get(name)
            if known is None or known[0] != stamp:
                known = (stamp, md5_file(path)[0])
                if status.st_size > _SMALL:
                    self._known[name] = known
        except (OSError, ValueError):
            return None
        return StoredFile(name, path, known[1], status.st_size)

    def exists(self, name: str) -> bool:
        """Whether a file with that name is stored."""
        try:
            return self.path(name).is_file()
        except (OSError, ValueError):
            return False

    def add(self, name: str, incoming: IncomingFile) -> bool:
        """Move a received file into the store; return False if it was there already.

        Raises:
            FileExistsError: the name already has another content.
        """
        md5 = incoming.finish()
        with self._lock:
            present = self.find(name)
            if present is not None:
                if present.md5 != md5:
                    raise FileExistsError(name)
                return False
            incoming.move(self.path(name))
        return True

    def add_from(self, name: str, source: BinaryIO, *, packed: bool = False) -> bool:
        """Store all that ``source`` has, ``packed`` or not, like :meth:`add`."""
        incoming = self.incoming()
        try:
            incoming.copy(source, packed=packed)
            return self.add(name, incoming)
        finally:
            incoming.discard()

    def add_bytes(self, name: str, contents: bytes) -> bool:
        """Store ``contents``, like :meth:`add`."""
        return self.add_from(name, BytesIO(contents))

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        self.path(name).unlink(missing_ok=True)


def directory_of(name: str) -> str:
    """Return the directory for a file name, as BOINC's ``dir_hier_path`` names it.

    Checked against ``wire/``: ``ea6a7ee2….txt`` is in ``323``, ``hello`` in ``2a``.
    """
    digest = hashlib.md5(name.encode("utf-8", "surrogateescape"), usedforsecurity=False)
    return f"{int(digest.hexdigest()[:8], 16) % _FANOUT:x}"


def md5_file(path: Path) -> tuple[str, int]:
    """Return MD5 (hex) and size of a file.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        nbytes = os.fstat(file.fileno()).st_size
    return digest.hexdigest(), nbytes
