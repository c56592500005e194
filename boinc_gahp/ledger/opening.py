"""Opens the ledger's file, on a file system with locks: creates or updates it, or only reads it."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from boinc_gahp.files import (
    NotOurs,
    check_private_file,
    make_private_directory,
    open_private_file,
    sync_directory,
)
from boinc_gahp.ledger._migrations import migrate, version

#: The text of the error by which a ledger's file is found to be gone.
DELETED = "it was deleted or replaced while it was open"

#: Seconds that a writer waits for another process's transaction.
BUSY_TIMEOUT = 30.0

#: The write-ahead log is written back into the file after this many pages (4 kB).
CHECKPOINT_PAGES = 1000

#: The write-ahead log is cut back to this many bytes after that.
LOG_KEPT = 4 * 1024 * 1024

#: NFS, CIFS, Lustre, GPFS, AFS and their relatives, beside FUSE: SQLite's locks do not work there
#: (``docs/htcondor-admins.rst``, "Homes on a network file system").
_NETWORK_TYPES = {
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb", "smb2", "smb3", "smbfs",
}  # fmt: skip

#: The kernel's list of this process's mounts (proc(5), "/proc/pid/mountinfo").
MOUNTINFO = Path("/proc/self/mountinfo")

_OCTAL = re.compile(r"\\([0-7]{3})")


def open_to_write(path: Path) -> sqlite3.Connection:
    """Return a connection to an up-to-date ledger, created if it is missing."""
    _make(path)
    # Opened read-only: a file of another version must stay unchanged, including its journal mode.
    with closing(open_to_read(path)) as connection:
        version(path, connection)
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        # This only works on a new file; boinc_gahp.ledger.upkeep releases free pages.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES:d}")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_KEPT:d}")
        migrate(path, connection)
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot change anything; creates no file.

    It reads whatever is there: a later release may have migrated the ledger while it was open.
    """
    _check(path)
    uri = f"{path.absolute().as_uri()}?mode=ro"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
    )


def explain(path: Path, verb: str, error: Exception, what: str = "ledger") -> str:
    """Return the error message for the owner of the state directory."""
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
        remedy = "it is not a ledger: move it away"
    elif isinstance(error, sqlite3.OperationalError) and "is locked" in str(error):
        remedy = f"another process has been writing to it for {BUSY_TIMEOUT:g} s ({error})"
    elif str(error) == DELETED:
        remedy = f"{DELETED}; the next boinc_gahp goes on with the file that is then there"
    elif isinstance(error, NotOurs):
        remedy = f"{error}; or set another dir in the section [state]"
    elif isinstance(error, OSError) and error.strerror:
        remedy = f"{error.strerror}; check the directory, or set another dir in [state]"
    else:
        remedy = f"{error}; check the disk's free space and the directory's permissions"
    return f"the {what} {path} cannot be {verb}: {remedy}"


def network_filesystem(path: Path, mountinfo: Path = MOUNTINFO) -> str | None:
    """Return the type of the network file system that ``path`` is on, or None.

    Symbolic links are followed; parts of the path may be missing. Without ``/proc`` the result is
    None; then only the ledger's own locks protect it.
    """
    try:
        lines = mountinfo.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    target = path.resolve()
    best: tuple[int, str] = (-1, "")
    for line in lines:
        mount = _parse(line)
        if mount is None:
            continue
        point, kind = mount
        depth = len(point.parts)
        # Of two mounts on the same point, the later line is the visible one.
        if depth >= best[0] and target.is_relative_to(point):
            best = (depth, kind)
    kind = best[1]
    return kind if kind in _NETWORK_TYPES or kind.startswith("fuse") else None


def _parse(line: str) -> tuple[Path, str] | None:
    """Return the mount point and the type in a line of mountinfo."""
    fields = line.split(" ")
    try:
        separator = fields.index("-", 6)
        point, kind = fields[4], fields[separator + 1]
    except (ValueError, IndexError):
        return None
    return Path(_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), point)), kind


def text(words: str) -> str:
    r"""Return text that SQLite can hold: bytes that are not UTF-8 are written as ``\udc..``."""
    return words.encode("utf-8", "backslashreplace").decode("utf-8")


def _make(path: Path) -> None:
    """Create the file, private to the user, so that a machine crash cannot lose its name."""
    make_private_directory(path.parent)
    is_new = not path.exists()
    descriptor = open_private_file(path, os.O_RDWR | os.O_CREAT)
    try:
        # A restored copy may have other permissions, and SQLite gives its -wal and -shm files the
        # same ones.
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    if is_new:
        sync_directory(path.parent)
    _check(path)


def _check(path: Path) -> None:
    """Refuse another user's file or log; SQLite itself would follow links."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        check_private_file(path.with_name(path.name + suffix))


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite does not wait if another process is doing the same."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # "database is locked", "locking protocol"; waiting does not help on a full disk.
            if "lock" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
