"""Destinations of outputs: which ones are refused, and what the job's owner is told then."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.cancel import NEVER_CANCELLED
from boinc_gahp.fetch.directories import open_parent, sync

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from boinc_gahp.fetch.cancel import CancelScope

#: Directories that are kept open to be synced; each takes a descriptor.
_MOST_OPEN = 64

_REASONS = {
    errno.ENOTDIR: "a part of its path is not a directory",
    errno.EACCES: "permission denied: make its directory writable for the job's owner",
    errno.EPERM: "not permitted: make its directory writable for the job's owner",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full: free some space and fetch again",
    errno.EDQUOT: "the disk quota is used up: free some space and fetch again",
    errno.EFBIG: "it is larger than a file may be here (ulimit -f, or the file system's limit)",
    errno.ENAMETOOLONG: "its name is too long",
    errno.ELOOP: "its path has a loop of symbolic links",
}


def explain(error: OSError, destination: Path) -> OutputError:
    """Return what to tell the job's owner about a file that cannot be written."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    if error.errno == errno.ENOENT:
        directory = str(destination.parent)
        reason = f"the directory {directory!r} does not exist: create it, or give another name"
    return OutputError(f"{str(destination)!r} cannot be written: {reason}")


def errno_of(error: BaseException) -> int:
    """Return the errno behind an error; 0 if the operating system did not cause it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError):
            return cause.errno or 0
        cause = cause.__cause__
    return 0


class Unsynced:
    """Directories with new names; the names are on the disk when its block ends.

    The files of a job are mostly in one directory, and to sync it for each of them would take a
    third of the time of a small fetch.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], tuple[int, Path]] = {}

    def add(self, directory: int, destination: Path) -> None:
        """Take a directory, by a descriptor, and the path of the file that is new in it."""
        if len(self._open) >= _MOST_OPEN:
            self._sync()
        status = os.fstat(directory)
        place = status.st_dev, status.st_ino
        if place not in self._open:
            self._open[place] = os.dup(directory), destination

    def _sync(self) -> None:
        found, self._open = list(self._open.values()), {}
        trouble: OutputError | None = None
        for directory, destination in found:
            try:
                sync(directory)
            except OSError as error:
                trouble = explain(error, destination)
            finally:
                os.close(directory)
        if trouble is not None:
            raise trouble

    def __enter__(self) -> Unsynced:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Sync them, also after an error: the files that were complete by then stay."""
        try:
            self._sync()
        except OutputError:
            if error is None:
                raise


def sync_name(directory: int, destination: Path, unsynced: Unsynced | None) -> None:
    """Have the name of a new file synced to the disk: now, or later by ``unsynced``.

    Raises:
        OSError: the disk failed, ...
    """
    if unsynced is None:
        sync(directory)
    else:
        unsynced.add(directory, destination)


def check_destination(
    destination: Path, scope: CancelScope = NEVER_CANCELLED, inside: Path | None = None
) -> None:
    """Refuse a destination that a rename cannot or must not replace.

    A symbolic link to a file is itself replaced; its target is left alone. For ``scope`` and
    ``inside`` see :func:`~boinc_gahp.fetch.directories.open_parent`.

    Raises:
        OutputError: it is a directory, a device, a pipe; or its directory is missing.
    """
    os.close(open_destination(destination, scope, inside))


def open_destination(destination: Path, scope: CancelScope, inside: Path | None) -> int:
    """Return a descriptor, for use as ``dir_fd``, of a destination's directory; errors as above."""
    try:
        directory = open_parent(destination, scope, inside)
    except OSError as error:
        raise explain(error, destination) from error
    except ValueError as error:
        raise _unfit(destination, error) from error
    try:
        _check_name(destination, directory)
    except ValueError as error:
        os.close(directory)
        raise _unfit(destination, error) from error
    except BaseException:
        os.close(directory)
        raise
    return directory


def _unfit(destination: Path, error: ValueError) -> OutputError:
    return OutputError(f"{str(destination)!r} cannot be written: {error}")


def _check_name(destination: Path, directory: int) -> None:
    try:
        mode = os.stat(destination.name or ".", dir_fd=directory).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise explain(error, destination) from error
    if stat.S_ISDIR(mode):
        raise OutputError(f"{str(destination)!r} is a directory: name a file in it")
    if not stat.S_ISREG(mode):
        raise OutputError(
            f"{str(destination)!r} is not a regular file, so an output cannot replace it: give "
            "another name"
        )
