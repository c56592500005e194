"""Temporary files beside their destinations, renamed into place when they are complete.

All of them are in a registry, so that a daemon that stops leaves none behind (``gahp.rst``,
"End of input"). Their names follow from the destination, so that the next fetch of the same file
takes over what a killed daemon left; and when a process first uses a directory, it removes what
killed daemons left there. If somebody else uses such a name, that file is left alone, and another
name is taken.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch import leftovers
from boinc_gahp.fetch.cancel import CancelScope
from boinc_gahp.fetch.destinations import Directories, explain
from boinc_gahp.fetch.types import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.fetch.destinations import Directory
    from boinc_gahp.fetch.leftovers import OwnFile

#: Jobs may share a directory and so a destination: this many fetches can write it at the same time.
_SLOTS = 1000
#: Directories that are remembered as swept; jobs that share one are fetched soon after each other.
_MOST_SWEPT = 1_000


class Temporaries:
    """The registry; one for the process (:data:`registry`), others for tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By path; None while it is being made.
        self._active: dict[str, TemporaryFile | None] = {}
        #: Directories, by device and inode, in which leftovers were looked for.
        self._swept: set[tuple[int, int]] = set()
        #: Is entered for each file that is made or renamed.
        self._open = CancelScope(error=_stopping)

    def file(
        self,
        destination: Path,
        directories: Directories | None = None,
        inside: Path | None = None,
    ) -> TemporaryFile:
        """Return a new, empty temporary file beside ``destination``.

        Args:
            destination: the path of the file that it will be.
            directories: opens the directory, and syncs it later; their scope is entered for each
                change. None: the directory is synced when the file is committed.
            inside: see :meth:`~boinc_gahp.fetch.destinations.Directories.open`.

        Raises:
            OutputError: the destination cannot be written, or the daemon is stopping.
            Exception: what the scope raises when it is closed; the file is gone then.
        """
        opened = directories or Directories()
        try:
            directory = opened.open_for(destination, inside)
        finally:
            if directories is None:
                opened.close()
        place = _Place(destination, directory, opened, directories is None)
        claimed: TemporaryFile | None = None
        try:
            self._sweep(directory, opened.scope)
            for name in _names(destination):
                try:
                    claimed = self._try(name, place)
                except FileExistsError:
                    unforeseen = f"{OWN}-{secrets.token_hex(16)}{leftovers.SUFFIX}"
                    claimed = self._try(unforeseen, place)
                if claimed is not None:
                    break
        except OSError as error:
            raise explain(error, destination) from error
        finally:
            directory.close()
        if claimed is None:
            raise OutputError(
                f"{str(destination)!r} is being written by {_SLOTS} other fetches: try again later",
                passes=True,
            )
        return claimed

    def rename(self, source: str, source_at: int, destination: str, destination_at: int) -> None:
        """Rename a file in one directory to a name in another, unless the daemon is stopping.

        Raises:
            OutputError: it is stopping.
            OSError: see :func:`os.replace`.
        """
        with self._open:
            os.replace(source, destination, src_dir_fd=source_at, dst_dir_fd=destination_at)

    def remove_all(self) -> None:
        """Remove every temporary file; from now on none can be made or renamed."""
        self._open.close()
        with self._lock:
            active = list(self._active.values())
        for item in active:
            if item is not None:
                item.remove()

    def release(self, path: str) -> None:
        """Take a path off the registry."""
        with self._lock:
            self._active.pop(path, None)

    def _sweep(self, directory: Directory, scope: CancelScope) -> None:
        """Remove what killed daemons left in a directory, when it is first used.

        A fetch takes over only what the last one of the same file left. More is left if several
        fetches of one file were killed, or if a job is not fetched again.
        """
        status = os.fstat(directory.at)
        place = status.st_dev, status.st_ino
        with self._lock:
            if place in self._swept:
                return
            if len(self._swept) >= _MOST_SWEPT:
                self._swept.clear()
            self._swept.add(place)
        with scope, self._open:
            leftovers.sweep_at(directory.at)

    def _try(self, name: str, place: _Place) -> TemporaryFile | None:
        """Return the temporary of this name, emptied and locked; None if another fetch has it.

        Raises:
            FileExistsError: something that is not a temporary has the name.
        """
        path = os.path.join(os.path.dirname(place.destination), name)  # noqa: PTH118, PTH120
        scope = place.directories.scope
        # None is made between remove_all and the end of the process.
        with scope, self._open:
            with self._lock:
                if path in self._active:
                    return None
                self._active[path] = None
            try:
                held = leftovers.hold(name, place.directory.at)
            except BaseException:
                self.release(path)
                raise
            if held is None:
                self.release(path)
                return None
            item = TemporaryFile(self, held, path, place)
            self._active[path] = item
            scope.at_close(item.remove_partial)
            try:
                item.empty()
            except BaseException:
                item.discard()
                raise
            return item


def _stopping() -> Exception:
    return OutputError(
        "boinc_gahp is stopping: fetch again when it has been started again", passes=True
    )


def _names(destination: Path) -> Iterator[str]:
    digest = hashlib.sha256(os.fsencode(destination)).hexdigest()[:16]
    for slot in range(_SLOTS):
        yield f"{OWN}-{digest}-{slot}{leftovers.SUFFIX}"


class _Place(NamedTuple):
    """Where a temporary is: its destination, and the directory of both.

    ``directories`` has opened the directory, and syncs it; if ``at_once``, when a file is there.
    """

    destination: Path
    directory: Directory
    directories: Directories
    at_once: bool


class TemporaryFile:
    """A file that is written here and appears at its destination complete, or not at all.

    As a context manager it is discarded at the end unless it was committed.

    Attributes:
        destination: the path that it is for.
        md5: hash object of the bytes written so far.
    """

    def __init__(self, registry: Temporaries, held: OwnFile, path: str, place: _Place) -> None:
        self.destination = place.destination
        self._path = path
        self._name = os.path.basename(path)  # noqa: PTH119
        self._place = place
        self._directory = place.directory.shared()
        self._registry = registry
        self._scope = place.directories.scope
        self._guard = threading.Lock()
        self._held: OwnFile | None = held

    @property
    def path(self) -> Path:
        """Its path: for people, and for functions that only take paths."""
        return Path(self._path)

    @property
    def _descriptor(self) -> int:
        if self._held is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._held.descriptor

    def empty(self) -> None:
        """Start again with an empty file: remove what an earlier one left, or what was written."""
        if self._held is not None:
            with self._scope:
                self._held.empty()
        self.md5 = hashlib.md5(usedforsecurity=False)

    def remove(self) -> None:
        """Remove it from the disk; later writes to it are lost.

        If it was removed before, another fetch may have its name by now: that one is left alone.
        """
        with self._guard:
            at = self._directory.at
            if self._held is not None and self._held.is_at(self._name, at):
                with suppress(FileNotFoundError):
                    os.unlink(self._name, dir_fd=at)

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
                os.close(held.descriptor)
                self._directory.close()
        if held is not None:
            self._registry.release(self._path)
            self._scope.not_at_close(self.remove_partial)

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

    def contents(self) -> BinaryIO:
        """Return the file, open for reading and writing, at its beginning; the caller closes it.

        ``md5`` does not change with what is written there.

        Raises:
            OutputError: it is gone.
        """
        try:
            # A copy of the descriptor would share its position in the file.
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.fdopen(os.open(self._name, flags, dir_fd=self._directory.at), "r+b")
            is_it = os.path.samestat(os.fstat(file.fileno()), os.fstat(self._descriptor))
        except OSError as error:
            raise explain(error, self.destination) from error
        if not is_it:
            file.close()
            raise OutputError(f"{str(self.path)!r} was removed while it was being written")
        return file

    def commit(self, *, executable: bool = False) -> os.stat_result:
        """Give the file its final name, and sync both to the disk; return its status there.

        The name is synced later if the file was made with ``directories``. If ``executable``, its
        owner may execute it.

        Raises:
            OutputError: the disk is full, the destination has become a directory, ...
        """
        try:
            if executable:
                with self._scope:
                    mode = stat.S_IMODE(os.fstat(self._descriptor).st_mode)
                    os.fchmod(self._descriptor, mode | stat.S_IXUSR)
            os.fsync(self._descriptor)  # may take long, so outside the scope
            directory = self._directory.shared()
            try:
                with self._scope:
                    status = os.fstat(self._descriptor)
                    at = directory.at
                    self._registry.rename(self._name, at, self.destination.name, at)
                    self.close()
                self._place.directories.has_new(directory, self.destination)
            finally:
                directory.close()
        except OSError as error:
            raise explain(error, self.destination) from error
        if self._place.at_once:
            self._place.directories.close()
        return status

    @contextmanager
    def room(self) -> Iterator[Path]:
        """Lend a new directory beside it, which is removed with all that is in it.

        Raises:
            OutputError: it cannot be made.
        """
        at = self._directory.at
        try:
            with self._scope:
                name = leftovers.make_room(self._name, at)
        except OSError as error:
            raise explain(error, self.destination) from error
        try:
            yield self.path.with_name(name)
        finally:
            with suppress(OSError):
                leftovers.remove_room(name, at)

    def __enter__(self) -> TemporaryFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self.discard()


#: The process's own registry.
registry = Temporaries()


def remove_all() -> None:
    """Remove every temporary file of this process; from now on none can be made."""
    registry.remove_all()
