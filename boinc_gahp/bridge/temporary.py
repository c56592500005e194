"""Temporary files beside their destinations, renamed into place when they are whole.

Every one of them is in a registry, so that a daemon that stops leaves none behind (``gahp.md``,
"What the gridmanager does", 9). Their names follow from the destination, so that what a killed
daemon did leave is taken over by the next fetch of the same file.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.bridge.directories import sync_directory
from boinc_gahp.bridge.gate import OPEN
from boinc_gahp.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from boinc_gahp.bridge.gate import Gate

#: Jobs may share a directory and so a destination: that many fetches write it at the same time.
_SLOTS = 1000
#: After its own slot, a fetch looks at least up to this one for what a killed daemon left.
_SWEPT = 4

_REASONS = {
    errno.ENOTDIR: "a part of its path is no directory",
    errno.EACCES: "permission denied: make its directory writable for the job's owner",
    errno.EPERM: "not permitted: make its directory writable for the job's owner",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full: free some space and fetch again",
    errno.EDQUOT: "the disk quota is used up: free some space and fetch again",
    errno.EFBIG: "it is larger than a file may be here (ulimit -f, or the file system's limit)",
    errno.ENAMETOOLONG: "its name is too long",
    errno.ELOOP: "its path has a loop of symbolic links",
}


class NotNow(OutputError):
    """A file cannot be written at this moment, for a reason that is no fault of anybody's."""


def explain(error: OSError, destination: Path) -> OutputError:
    """Return what to tell the job's owner about a file that cannot be written."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    if error.errno == errno.ENOENT:
        directory = str(destination.parent)
        reason = f"the directory {directory!r} does not exist: create it, or give another name"
    return OutputError(f"{str(destination)!r} cannot be written: {reason}")


def check_destination(destination: Path) -> None:
    """Refuse a destination that a rename cannot or must not replace.

    A symbolic link to a file is replaced itself; its target is left alone.

    Raises:
        OutputError: it is a directory, a device, a pipe; or its directory is missing.
    """
    try:
        mode = destination.stat().st_mode
    except FileNotFoundError as error:
        if not destination.parent.is_dir():
            raise explain(error, destination) from error
        return
    except OSError as error:
        raise explain(error, destination) from error
    except ValueError as error:
        raise OutputError(f"{str(destination)!r} cannot be written: {error}") from error
    if stat.S_ISDIR(mode):
        raise OutputError(f"{str(destination)!r} is a directory: name a file in it")
    if not stat.S_ISREG(mode):
        raise OutputError(f"{str(destination)!r} is no regular file, an output cannot replace it")


class Temporaries:
    """The registry; one for the process (:data:`registry`), others for tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: dict[Path, _Temporary] = {}
        self._closed = False

    def file(self, destination: Path, gate: Gate = OPEN) -> TemporaryFile:
        """Return a new, empty temporary file beside ``destination``.

        Raises:
            OutputError: the destination cannot be written, or the daemon is stopping.
            Exception: what the gate raises when it is closed; the file is gone then.
        """
        return self._claim(destination, "part", _open_file, TemporaryFile, gate)

    def directory(self, destination: Path, gate: Gate = OPEN) -> TemporaryDirectory:
        """Return a new, empty temporary directory beside ``destination``; errors as above."""
        return self._claim(destination, "unpack", _open_directory, TemporaryDirectory, gate)

    def rename(self, source: Path, destination: Path) -> None:
        """Rename, unless the daemon is stopping.

        Raises:
            OutputError: it is stopping.
            OSError: see :meth:`Path.replace`.
        """
        with self._lock:
            self._check_open()
            source.replace(destination)

    def remove_all(self) -> None:
        """Remove every temporary file; from now on none can be made or renamed."""
        with self._lock:
            self._closed = True
            active = list(self._active.values())
        for item in active:
            item.remove()

    def release(self, path: Path) -> None:
        """Take a path off the registry."""
        with self._lock:
            self._active.pop(path, None)

    def _check_open(self) -> None:
        if self._closed:
            raise NotNow("boinc_gahp is stopping: fetch again when it has been started again")

    def _claim(
        self,
        destination: Path,
        suffix: str,
        open_: Callable[[Path], int],
        kind: Callable[[Temporaries, Path, int, Path, Gate], _Kind],
        gate: Gate,
    ) -> _Kind:
        check_destination(destination)
        digest = hashlib.sha256(os.fsencode(destination)).hexdigest()[:16]
        claimed: _Kind | None = None
        try:
            for slot in range(_SLOTS):
                path = destination.parent / f".boinc_gahp-{digest}-{slot}.{suffix}"
                if claimed is None:
                    claimed = self._try(path, destination, open_, kind, gate)
                elif os.path.lexists(path):
                    # Left by a daemon that was killed while several fetches wrote the same file.
                    left = self._try(path, destination, open_, kind, gate)
                    if left is not None:
                        left.discard()
                elif slot >= _SWEPT:
                    break
        except BaseException as error:
            if claimed is not None:
                claimed.discard()
            if isinstance(error, OSError):
                raise explain(error, destination) from error
            raise
        if claimed is None:
            raise NotNow(f"{str(destination)!r} is being written by {_SLOTS} other fetches")
        return claimed

    def _try(
        self,
        path: Path,
        destination: Path,
        open_: Callable[[Path], int],
        kind: Callable[[Temporaries, Path, int, Path, Gate], _Kind],
        gate: Gate,
    ) -> _Kind | None:
        """Return the temporary at ``path``, emptied and locked; None where another one has it."""
        with gate:
            # Under the lock, so that none comes to be between remove_all and the process's end.
            with self._lock:
                self._check_open()
                if path in self._active:
                    return None
                descriptor = open_(path)
                if not _lock(descriptor, path):
                    os.close(descriptor)
                    return None
                item = kind(self, path, descriptor, destination, gate)
                self._active[path] = item
            gate.at_close(item.withdraw)
            try:
                item.empty()
            except BaseException:
                item.discard()
                raise
            return item


class _Temporary:
    """What the two kinds of temporaries have in common."""

    def __init__(
        self, registry: Temporaries, path: Path, descriptor: int, destination: Path, gate: Gate
    ) -> None:
        self.path = path
        self.destination = destination
        self._registry = registry
        self._gate = gate
        self._guard = threading.Lock()
        self._descriptor = descriptor

    def empty(self) -> None:
        """Remove what an earlier one left."""
        raise AssertionError

    def remove(self) -> None:
        """Remove it from the disk; what still writes to it writes to nothing.

        Where it was removed before, its path may be another fetch's by now: that is left alone.
        """
        with self._guard:
            if self._descriptor >= 0 and _is_at(self._descriptor, self.path):
                self._remove()

    def _remove(self) -> None:
        raise AssertionError

    def withdraw(self) -> None:
        """Remove it for a gate that is being closed; never fails."""
        with suppress(OSError):
            self.remove()

    def discard(self) -> None:
        """Remove it, and let go of it."""
        self.remove()
        self.close()

    def close(self) -> None:
        """Let go of it; whatever is on the disk stays."""
        with self._guard:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
            self._registry.release(self.path)
            self._gate.not_at_close(self.withdraw)


_Kind = TypeVar("_Kind", bound=_Temporary)


class TemporaryFile(_Temporary):
    """A file that is written here and appears at its destination whole, or not at all.

    As a context manager it is discarded at the end unless it was committed.

    Attributes:
        size: bytes written so far.
        md5: hash object of these bytes.
    """

    def __init__(
        self, registry: Temporaries, path: Path, descriptor: int, destination: Path, gate: Gate
    ) -> None:
        super().__init__(registry, path, descriptor, destination, gate)
        self.size = 0
        self.md5 = hashlib.md5(usedforsecurity=False)

    def empty(self) -> None:
        """Start again with an empty file."""
        with self._gate:
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.size = 0
        self.md5 = hashlib.md5(usedforsecurity=False)

    def write(self, data: bytes) -> None:
        """Append ``data``.

        Raises:
            OutputError: the disk is full, ...
        """
        rest = memoryview(data)
        try:
            while rest:
                with self._gate:
                    rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise explain(error, self.destination) from error
        self.md5.update(data)
        self.size += len(data)

    def commit(self) -> os.stat_result:
        """Put the file under its final name, and both on the disk; return its status there.

        Raises:
            OutputError: the disk is full, the destination has become a directory, ...
        """
        try:
            os.fsync(self._descriptor)  # may take long, so outside the gate
            with self._gate:
                status = os.fstat(self._descriptor)
                self._registry.rename(self.path, self.destination)
                self.close()
            sync_directory(self.destination.parent)
        except OSError as error:
            raise explain(error, self.destination) from error
        return status

    def _remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> TemporaryFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor >= 0:
            self.discard()


class TemporaryDirectory(_Temporary):
    """A directory that is gone, with what is left in it, when its block ends."""

    def empty(self) -> None:
        """Remove what is in it; inside the gate."""
        for child in self.path.iterdir():
            if child.is_dir() and not child.is_symlink():
                shutil.rmtree(child)
            else:
                child.unlink()

    def _remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> TemporaryDirectory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()


def sweep(directory: Path) -> None:
    """Remove the temporary files that a killed daemon left in a directory; never fails.

    Those that a fetch is at are left alone, and all where the file system has no locks to tell.
    """
    with suppress(OSError):
        for path in directory.glob(".boinc_gahp-*"):
            if path.suffix in {".part", ".unpack"}:
                with suppress(OSError):
                    _sweep(path)


def _sweep(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(descriptor, path):
            return
        if path.suffix == ".unpack":
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(descriptor)


def _open_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def _open_directory(path: Path) -> int:
    path.mkdir(mode=0o700, exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _lock(descriptor: int, path: Path) -> bool:
    """Return whether this process, and no other, may write what the descriptor stands for.

    A file system without locks (some NFS) is taken at its word: two daemons of one user that fetch
    the same job at the same moment are all that could go wrong there.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    # Another one may have renamed or removed it before it let go of the lock.
    return _is_at(descriptor, path)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


#: The process's own registry.
registry = Temporaries()


def remove_all() -> None:
    """Remove every temporary file of this process; from now on none can be made."""
    registry.remove_all()
