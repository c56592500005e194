"""Destinations of outputs, and their directories: opened with care, made, synced, and guarded.

Nothing may appear in a job's directory once HTCondor was told that the job is cancelled
(``gridmanager-batch.rst``, "Life of a job"): it may have started the job again there. Likewise
nothing may appear in a person's directory once they have stopped a fetch.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError, Stopped
from boinc_gahp.files import open_below, open_directory, sync
from boinc_gahp.submit.singleflight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from boinc_gahp.files import Make

#: By device and inode: the syncs that are under way; none is needed later.
_syncs: SingleFlight[tuple[int, int], None] = SingleFlight(1)

#: Directories that are kept open to be synced; each takes a descriptor.
_MOST_OPEN = 64

_REASONS = {
    errno.ENOTDIR: "a part of its path is not a directory",
    errno.EACCES: "permission denied: make its directory writable for the job's owner",
    errno.EPERM: "not permitted: make its directory writable for the job's owner",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EFBIG: "it is larger than a file may be here (ulimit -f, or the file system's limit)",
    errno.ENAMETOOLONG: "its name is too long",
    errno.ELOOP: "its path has a loop of symbolic links",
}


def explain(error: OSError | ValueError, destination: Path) -> OutputError:
    """Return what to tell the job's owner about a file that cannot be written."""
    number = errno_of(error)
    reason = _REASONS.get(number) or getattr(error, "strerror", None) or str(error)
    if number == errno.ENOENT:
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


def _stopped() -> Exception:
    return Stopped("stopped on request: what is complete stays, fetch again for the rest")


class CancelScope:
    """Guards a directory while outputs are fetched into it; thread-safe.

    Every change in the directory (a write, a rename, a mkdir, or the removal of a file that may be
    somebody else's) is made inside ``with scope:``. Changes have to be short, because :meth:`close`
    waits for them. Several threads may be inside, and a thread may enter again.

    Args:
        events: each of these closes the scope, too, when it is set; a temporary file is then
            removed at the next step of its fetch.
        error: returns the exception to raise when the scope is closed.
    """

    def __init__(self, *events: threading.Event, error: Callable[[], Exception] = _stopped) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._events = events
        self._error = error
        self._inside = 0
        self._closed = False
        self._clearings: set[Callable[[], None]] = set()

    def check(self) -> None:
        """Raise if the scope is closed."""
        if self._closed:
            raise self._error()
        for event in self._events:
            if event.is_set():
                raise self._error()

    def close(self) -> None:
        """Let no thread in from now on; returns when all threads are out."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)
            # A fetch may be waiting for the network: its temporary files are removed already now.
            while self._clearings:
                self._clearings.pop()()

    def at_close(self, clear: Callable[[], None]) -> None:
        """Have :meth:`close` call ``clear``, which must not fail; only called from inside."""
        with self._lock:
            self._clearings.add(clear)

    def not_at_close(self, clear: Callable[[], None]) -> None:
        """Undo :meth:`at_close`; harmless if it was not called."""
        with self._lock:
            self._clearings.discard(clear)

    def __enter__(self) -> None:
        """Enter; raises if the scope is closed."""
        with self._lock:
            self.check()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        """Leave."""
        with self._lock:
            self._inside -= 1
            if not self._inside and self._closed:
                self._changed.notify_all()


#: For fetches that cannot be cancelled; nobody closes it.
NEVER_CANCELLED = CancelScope()


class Directory:
    """An open directory, which is closed when each of its users has closed it.

    Attributes:
        at: its descriptor, for use as ``dir_fd``.
        place: its device and inode.
    """

    def __init__(self, at: int) -> None:
        self.at = at
        status = os.fstat(at)
        self.place = status.st_dev, status.st_ino
        self._users = 1

    def shared(self) -> Directory:
        """Return it for one more user."""
        self._users += 1
        return self

    def close(self) -> None:
        """Close it for one user."""
        self._users -= 1
        if not self._users:
            os.close(self.at)


class Directories:
    """The directories of one job's files; new names in them are on the disk when its block ends.

    The files of a job are mostly in one directory. It is opened once and synced once: to do that
    for each file would take half of the time of a small fetch. Used by one thread.

    Args:
        scope: is entered for each change in them.
        synced_later: status of a directory that the caller syncs, after many jobs have made theirs
            in it.
    """

    def __init__(
        self,
        scope: CancelScope = NEVER_CANCELLED,
        *,
        synced_later: os.stat_result | None = None,
    ) -> None:
        self.scope = scope
        self._synced_later = synced_later and (synced_later.st_dev, synced_later.st_ino)
        self._open: dict[tuple[str, str | None], Directory] = {}
        #: Those with new names, and the path of a file that is new there.
        self._unsynced: dict[Directory, Path] = {}

    def open(
        self, destination: Path, inside: Path | None = None, *, make: bool = False
    ) -> Directory:
        """Return a destination's directory; the caller closes it.

        Args:
            destination: a file's path.
            inside: the directory below which the path consists of names from the network: missing
                directories there are made, and links are not followed.
            make: make the directory, and those above it, if they are missing.

        Raises:
            OutputError: there is a link below ``inside``; a directory could not be synced.
            OSError: it cannot be opened or made.
        """
        parent = os.path.dirname(destination)  # noqa: PTH120  (for each file)
        top = None if inside is None else os.fspath(inside)
        key = parent, None if top == parent else top
        found = self._open.get(key)
        if found is None:
            if len(self._open) >= _MOST_OPEN:
                self.close()
            found = self._open[key] = Directory(self._opened(destination, inside, make=make))
        return found.shared()

    def _opened(self, destination: Path, inside: Path | None, *, make: bool) -> int:
        def made(name: str, at: int) -> None:
            with self.scope:
                os.mkdir(name, dir_fd=at)
            made_in = Directory(os.dup(at))
            if made_in.place != self._synced_later:
                self.has_new(made_in, destination)
            made_in.close()

        if inside is None:
            return open_directory(destination.parent, make=made if make else None)
        at = open_directory(inside)
        where = inside
        try:
            for name in destination.relative_to(inside).parts[:-1]:
                where /= name
                below = _below(at, name, where, made)
                os.close(at)
                at = below
        except BaseException:
            os.close(at)
            raise
        return at

    def check(self, destination: Path, inside: Path | None = None, *, make: bool = False) -> None:
        """Refuse a destination that a rename cannot or must not replace.

        A symbolic link to a file is itself replaced; its target is left alone. The arguments are
        those of :meth:`open`.

        Raises:
            OutputError: it is a directory, a device, a pipe; or its directory is missing.
        """
        try:
            directory = self.open(destination, inside, make=make)
        except (OSError, ValueError) as error:
            raise explain(error, destination) from error
        try:
            _check_name(destination, directory.at)
        finally:
            directory.close()

    def has_new(self, directory: Directory, destination: Path) -> None:
        """Note that a directory, which was opened here, has a new name: that of a file."""
        if directory not in self._unsynced:
            self._unsynced[directory.shared()] = destination

    def close(self) -> None:
        """Sync the new names, and close the directories that have no other users.

        Raises:
            OutputError: the disk failed, ...
        """
        opened, self._open = list(self._open.values()), {}
        unsynced, self._unsynced = self._unsynced, {}
        trouble: OutputError | None = None
        for directory, destination in unsynced.items():
            try:
                sync_together(directory)
            except OSError as error:
                trouble = explain(error, destination)
        for directory in (*opened, *unsynced):
            directory.close()
        if trouble is not None:
            raise trouble

    def __enter__(self) -> Directories:
        return self

    def __exit__(self, *error: object) -> None:
        """Sync them, also after an error: the files that were complete by then stay."""
        try:
            self.close()
        except OutputError:
            if error[0] is None:
                raise


def sync_together(directory: Directory) -> None:
    """Sync the names in a directory to the disk; threads that wait for the same one share a sync.

    Jobs may share a directory. A sync serves all threads that came before it began.

    Raises:
        OSError: the disk failed, ...
    """
    _syncs.get(directory.place, lambda: sync(directory.at), lambda _: False)


def _check_name(destination: Path, directory: int) -> None:
    try:
        mode = os.stat(destination.name or ".", dir_fd=directory).st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise explain(error, destination) from error
    if stat.S_ISDIR(mode):
        raise OutputError(f"{str(destination)!r} is a directory: name a file in it")
    if not stat.S_ISREG(mode):
        raise OutputError(
            f"{str(destination)!r} is not a regular file, so an output cannot replace it: give "
            "another name"
        )


def check_directory(path: str) -> None:
    """Refuse a job's directory that does not exist, before it is made for one of the files.

    If its file system is not mounted, all files would go below the mount point.

    Raises:
        OutputError: it is not a directory, or it cannot be looked at.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError as error:
        raise OutputError(
            f"the job's directory {path!r} cannot be used: {error.strerror}"
        ) from error
    if not stat.S_ISDIR(mode):
        raise OutputError(f"the job's directory {path!r} is not a directory")


def _below(at: int, name: str, where: Path, make: Make) -> int:
    try:
        return open_below(at, name, make)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and where.is_symlink():
            raise OutputError(
                f"{str(where)!r} is a symbolic link, and the project chose its name, so "
                "boinc_gahp does not write through it: remove the link, or choose another "
                "directory for the outputs"
            ) from error
        raise
