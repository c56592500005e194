"""Temporary files beside their destinations, renamed into place when they are complete.

All of them are in a registry, so that a daemon that stops leaves none behind (``gahp.rst``,
"End of input"). Their names follow from the destination, so that the next fetch of the same file
takes over what a killed daemon left. If somebody else uses such a name, that file is left alone,
and another name is taken.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import threading
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, BinaryIO, ClassVar, NamedTuple, TypeVar

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch import leftovers
from boinc_gahp.fetch.cancel import NEVER_CANCELLED
from boinc_gahp.fetch.destinations import Unsynced, explain, open_destination, sync_name
from boinc_gahp.fetch.directories import open_parent
from boinc_gahp.fetch.types import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from boinc_gahp.fetch.cancel import CancelScope
    from boinc_gahp.fetch.leftovers import OwnFile

#: Jobs may share a directory and so a destination: this many fetches can write it at the same time.
_SLOTS = 1000
#: A fetch looks for leftovers of a killed daemon in the slots after its own, at least up to this.
_SWEPT = 4


class TryLater(OutputError):
    """A file cannot be written at this moment; a later attempt may succeed."""

    code = "BG-NOT-NOW"


class Temporaries:
    """The registry; one for the process (:data:`registry`), others for tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: dict[Path, _Temporary] = {}
        self._closed = False

    def file(
        self, destination: Path, scope: CancelScope = NEVER_CANCELLED, inside: Path | None = None
    ) -> TemporaryFile:
        """Return a new, empty temporary file beside ``destination``.

        For ``inside`` see :func:`~boinc_gahp.fetch.directories.open_parent`.

        Raises:
            OutputError: the destination cannot be written, or the daemon is stopping.
            Exception: what the scope raises when it is closed; the file is gone then.
        """
        return self._claim(TemporaryFile, destination, scope, inside)

    def directory(
        self, destination: Path, scope: CancelScope = NEVER_CANCELLED, inside: Path | None = None
    ) -> TemporaryDirectory:
        """Return a new, empty temporary directory beside ``destination``; errors as above."""
        return self._claim(TemporaryDirectory, destination, scope, inside)

    def rename(self, source: str, source_at: int, destination: str, destination_at: int) -> None:
        """Rename a file in one directory to a name in another, unless the daemon is stopping.

        Raises:
            OutputError: it is stopping.
            OSError: see :func:`os.replace`.
        """
        with self._lock:
            self._check_open()
            os.replace(source, destination, src_dir_fd=source_at, dst_dir_fd=destination_at)

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
            raise TryLater("boinc_gahp is stopping: fetch again when it has been started again")

    def _claim(
        self, kind: type[_Kind], destination: Path, scope: CancelScope, inside: Path | None
    ) -> _Kind:
        at = open_destination(destination, scope, inside)
        claimed: _Kind | None = None
        try:
            for slot, path in enumerate(_names(destination, kind.suffix)):
                if claimed is None:
                    try:
                        claimed = self._try(kind, path, at, destination, scope)
                    except leftovers.NameTaken:
                        # A name that nobody can predict.
                        claimed = self._try(kind, _unforeseen(path), at, destination, scope)
                elif _exists(path.name, at):
                    # Left by a daemon that was killed while several fetches wrote the same file.
                    with suppress(leftovers.NameTaken):
                        left = self._try(kind, path, at, destination, scope)
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
        finally:
            os.close(at)
        if claimed is None:
            raise TryLater(
                f"{str(destination)!r} is being written by {_SLOTS} other fetches: try again later"
            )
        return claimed

    def _try(
        self, kind: type[_Kind], path: Path, at: int, destination: Path, scope: CancelScope
    ) -> _Kind | None:
        """Return the temporary at ``path``, emptied and locked; None if another fetch has it.

        Raises:
            Taken: something that is not a temporary has the name.
        """
        with scope:
            # Under the lock, so that none is made between remove_all and the end of the process.
            with self._lock:
                self._check_open()
                if path in self._active:
                    return None
                held = kind.hold(path.name, at)
                if held is None:
                    return None
                try:
                    place = _Place(path, destination, os.dup(at))
                except OSError:
                    held.remove(path.name, at)
                    held.close()
                    raise
                item = kind(self, held, place, scope)
                self._active[path] = item
            scope.at_close(item.remove_partial)
            try:
                item.empty()
            except BaseException:
                item.discard()
                raise
            return item


def _names(destination: Path, suffix: str) -> Iterator[Path]:
    digest = hashlib.sha256(os.fsencode(destination)).hexdigest()[:16]
    for slot in range(_SLOTS):
        yield destination.parent / f"{OWN}-{digest}-{slot}.{suffix}"


def _unforeseen(path: Path) -> Path:
    return path.with_name(f"{OWN}-{secrets.token_hex(16)}{path.suffix}")


def _exists(name: str, at: int) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError:
        return False
    return True


class _Place(NamedTuple):
    """A temporary's path, its destination, and its own descriptor of the directory."""

    path: Path
    destination: Path
    at: int


class _Temporary:
    """What the two kinds of temporaries have in common.

    Attributes:
        path: for people, and for functions that only take paths.
        destination: the path that it is for.
    """

    #: The suffix of its name.
    suffix: ClassVar[str]

    @staticmethod
    def hold(name: str, at: int) -> OwnFile | None:
        """Make it, or take it over."""
        raise NotImplementedError

    def __init__(
        self, registry: Temporaries, held: OwnFile, place: _Place, scope: CancelScope
    ) -> None:
        self.path, self.destination, self._at = place
        self._registry = registry
        self._scope = scope
        self._guard = threading.Lock()
        self._held: OwnFile | None = held

    @property
    def _descriptor(self) -> int:
        if self._held is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._held.descriptor

    def empty(self) -> None:
        """Remove its contents: what an earlier one left, or what was written."""
        if self._held is not None:
            with self._scope:
                self._held.empty()

    def remove(self) -> None:
        """Remove it from the disk; later writes to it are lost.

        If it was removed before, another fetch may have its name by now: that one is left alone.
        """
        with self._guard:
            if self._held is not None and self._held.is_at(self.path.name, self._at):
                with suppress(FileNotFoundError):
                    self._held.remove(self.path.name, self._at)

    def remove_partial(self) -> None:
        """Remove it because the scope is being closed; never fails."""
        with suppress(OSError):
            self.remove()

    def discard(self) -> None:
        """Remove it, and close it."""
        self.remove()
        self.close()

    def close(self) -> None:
        """Release it; the disk is left as it is."""
        with self._guard:
            held, self._held = self._held, None
            if held is not None:
                held.close()
                os.close(self._at)
        if held is not None:
            self._registry.release(self.path)
            self._scope.not_at_close(self.remove_partial)


_Kind = TypeVar("_Kind", bound=_Temporary)


class TemporaryFile(_Temporary):
    """A file that is written here and appears at its destination complete, or not at all.

    As a context manager it is discarded at the end unless it was committed.

    Attributes:
        size: bytes written so far.
        md5: hash object of these bytes.
    """

    suffix = leftovers.FILE

    @staticmethod
    def hold(name: str, at: int) -> OwnFile | None:
        """Make it, or take it over."""
        return leftovers.hold_file(name, at)

    def __init__(
        self, registry: Temporaries, held: OwnFile, place: _Place, scope: CancelScope
    ) -> None:
        super().__init__(registry, held, place, scope)
        self.size = 0
        self.md5 = hashlib.md5(usedforsecurity=False)

    def empty(self) -> None:
        """Start again with an empty file."""
        super().empty()
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
                with self._scope:
                    rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            raise explain(error, self.destination) from error
        self.md5.update(data)
        self.size += len(data)

    def contents(self) -> BinaryIO:
        """Return the file, open for reading and writing, at its beginning; the caller closes it.

        ``size`` and ``md5`` do not change with what is written there.

        Raises:
            OutputError: it is gone.
        """
        try:
            # A copy of the descriptor would share its position in the file.
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.fdopen(os.open(self.path.name, flags, dir_fd=self._at), "r+b")
            is_it = os.path.samestat(os.fstat(file.fileno()), os.fstat(self._descriptor))
        except OSError as error:
            raise explain(error, self.destination) from error
        if not is_it:
            file.close()
            raise OutputError(f"{str(self.path)!r} was removed while it was being written")
        return file

    def commit(self, unsynced: Unsynced | None = None) -> os.stat_result:
        """Give the file its final name, and sync both to the disk; return its status there.

        Args:
            unsynced: syncs the name later.

        Raises:
            OutputError: the disk is full, the destination has become a directory, ...
        """
        try:
            os.fsync(self._descriptor)  # may take long, so outside the scope
            at = os.dup(self._at)
            try:
                with self._scope:
                    status = os.fstat(self._descriptor)
                    self._registry.rename(self.path.name, at, self.destination.name, at)
                    self.close()
                sync_name(at, self.destination, unsynced)
            finally:
                os.close(at)
        except OSError as error:
            raise explain(error, self.destination) from error
        return status

    def __enter__(self) -> TemporaryFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._held is not None:
            self.discard()


class TemporaryDirectory(_Temporary):
    """A directory that is removed, with everything in it, when its block ends."""

    suffix = leftovers.DIRECTORY

    @staticmethod
    def hold(name: str, at: int) -> OwnFile | None:
        """Make it, or take it over."""
        return leftovers.hold_directory(name, at)

    def create(self, name: str) -> FileIO:
        """Return a new file in it, open for writing and reading; errors of :func:`os.open`."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return FileIO(os.open(name, flags, 0o666, dir_fd=self._descriptor), "r+")

    def open(self, name: str) -> FileIO:
        """Return a file in it, open for reading; errors of :func:`os.open`."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        return FileIO(os.open(name, flags, dir_fd=self._descriptor))

    def place(
        self,
        name: str,
        destination: Path,
        inside: Path | None = None,
        unsynced: Unsynced | None = None,
    ) -> os.stat_result | None:
        """Move one of its files, already synced to the disk, into place; return its status there.

        None: the destination is on another file system, and nothing was done. ``unsynced`` syncs
        the name later.

        Raises:
            OutputError: the file cannot be put there.
        """
        try:
            at = open_parent(destination, self._scope, inside)
            try:
                with self._scope:
                    status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
                    self._registry.rename(name, self._descriptor, destination.name, at)
                sync_name(at, destination, unsynced)
            finally:
                os.close(at)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return None
            raise explain(error, destination) from error
        return status

    def __enter__(self) -> TemporaryDirectory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()


#: The process's own registry.
registry = Temporaries()


def remove_all() -> None:
    """Remove every temporary file of this process; from now on none can be made."""
    registry.remove_all()
