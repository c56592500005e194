"""Temporary files beside their destinations, renamed into place when they are complete.

All of them are in a registry, so that a daemon that stops leaves none behind (``gahp.rst``,
"End of input"). When a process first uses a directory, it removes what killed daemons left there.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch import leftovers
from boinc_gahp.fetch.destinations import CancelScope, Directories, explain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.fetch.destinations import Directory
    from boinc_gahp.fetch.leftovers import OwnFile

#: Directories that are remembered as swept; jobs that share one are fetched soon after each other.
_MOST_SWEPT = 1_000


class Temporaries:
    """The registry; one for the process (:data:`registry`), others for tests."""

    def __init__(self) -> None:
        #: Directories, by device and inode, in which leftovers were looked for.
        self._swept: set[tuple[int, int]] = set()
        #: Is entered for each file that is made or renamed, and removes them when it is closed.
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
                change, and has been asked whether the destination can be replaced. None: that is
                checked here, and the directory is synced when the file is committed.
            inside: see :meth:`~boinc_gahp.fetch.destinations.Directories.open`.

        Raises:
            OutputError: the destination cannot be written, or the daemon is stopping.
            Exception: what the scope raises when it is closed; the file is gone then.
        """
        opened = directories or Directories()
        try:
            if directories is None:
                opened.check(destination, inside)
            with closing(opened.open(destination, inside)) as directory:
                self._sweep(directory, opened.scope)
                # None is made between remove_all and the end of the process.
                with opened.scope, self._open:
                    held = leftovers.new_file(directory.at)
                    return TemporaryFile(
                        held,
                        destination,
                        directory,
                        opened,
                        self._open,
                        at_once=directories is None,
                    )
        except (OSError, ValueError) as error:
            raise explain(error, destination) from error
        finally:
            if directories is None:
                opened.close()

    def remove_all(self) -> None:
        """Remove every temporary file; from now on none can be made or renamed."""
        self._open.close()

    def _sweep(self, directory: Directory, scope: CancelScope) -> None:
        """Remove what killed daemons left in a directory, when it is first used."""
        # Two threads may both sweep it: that is harmless.
        if directory.place in self._swept:
            return
        if len(self._swept) >= _MOST_SWEPT:
            self._swept.clear()
        self._swept.add(directory.place)
        with scope, self._open:
            leftovers.sweep_at(directory.at)


def _stopping() -> Exception:
    return OutputError(
        "boinc_gahp is stopping: fetch again when it has been started again", passes=True
    )


class TemporaryFile:
    """A file that is written here and appears at its destination complete, or not at all.

    As a context manager it is discarded at the end unless it was committed. It is made inside its
    two scopes: that of its directories, and its registry's; either removes it when it is closed.

    Args:
        held: the file.
        destination: the path that it is for.
        directory: where both are.
        directories: has opened the directory, and syncs it.
        stopping: its registry's scope.
        at_once: whether to sync the directory when the file is committed.

    Attributes:
        destination: the path that it is for.
        md5: hash object of the bytes written so far.
    """

    def __init__(
        self,
        held: OwnFile,
        destination: Path,
        directory: Directory,
        directories: Directories,
        stopping: CancelScope,
        *,
        at_once: bool,
    ) -> None:
        self.destination = destination
        self.md5 = hashlib.md5(usedforsecurity=False)
        self._name = held.name
        self._directory = directory.shared()
        self._directories = directories
        self._at_once = at_once
        self._scope = directories.scope
        self._stopping = stopping
        self._guard = threading.Lock()
        self._held: OwnFile | None = held
        for scope in (self._scope, stopping):
            scope.at_close(self.remove)

    @property
    def path(self) -> Path:
        """Its path: for people, and for functions that only take paths."""
        return self.destination.with_name(self._name)

    @property
    def _descriptor(self) -> int:
        if self._held is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._held.descriptor

    def empty(self) -> None:
        """Start again with an empty file."""
        if self._held is not None:
            with self._scope:
                os.ftruncate(self._descriptor, 0)
                os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.md5 = hashlib.md5(usedforsecurity=False)

    def remove(self) -> None:
        """Remove it from the disk; later writes to it are lost. Never fails."""
        with self._guard:
            if self._held is not None:
                with suppress(OSError):
                    os.unlink(self._name, dir_fd=self._directory.at)

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
            for scope in (self._scope, self._stopping):
                scope.not_at_close(self.remove)

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
            at = self._directory.at
            with self._scope, self._stopping:
                status = os.fstat(self._descriptor)
                os.replace(self._name, self.destination.name, src_dir_fd=at, dst_dir_fd=at)
                self._directories.has_new(self._directory, self.destination)
                self.close()
        except OSError as error:
            raise explain(error, self.destination) from error
        if self._at_once:
            self._directories.close()
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
