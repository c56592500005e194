"""One SQLite file for many threads and processes: one thread commits, any thread reads."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger._migrations import VERSION, version
from boinc_gahp.ledger.opening import (
    BUSY_TIMEOUT,
    DELETED,
    explain,
    network_filesystem,
    open_to_read,
    open_to_write,
)
from boinc_gahp.threads import start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    #: The values of a statement's parameters.
    Values = tuple[object, ...] | Mapping[str, object]

T = TypeVar("T")

#: How many rows are changed at a time, so that other changes can come in between.
CHUNK = 1000

#: How many reading connections are kept open; each holds up to 2 MB of pages.
IDLE_READERS = 4

#: From this many bytes of write-ahead log, writing waits for readers, so that the log can restart.
LOG_LIMIT = 16 * 1024 * 1024

#: Seconds of such a wait, and between two of them.
LOG_WAIT, LOG_PAUSE = 0.25, 5.0


class _Change(Generic[T]):
    """A change that waits for its commit, and its result."""

    def __init__(self, change: Callable[[sqlite3.Connection], T]) -> None:
        self._change = change
        self.result: T | None = None
        self.error: BaseException | None = None
        #: Set when the change is on the disk, or has failed.
        self.is_over = threading.Event()

    def run(self, connection: sqlite3.Connection) -> None:
        """Make the change inside the transaction; an exception in it undoes only this change.

        Raises:
            sqlite3.Error: SQLite itself has undone the whole transaction (a full disk).
        """
        connection.execute("SAVEPOINT change")
        try:
            self.result = self._change(connection)
        except BaseException as error:
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO change")
            self.error = error
        connection.execute("RELEASE change")


class Store:
    """The ledger's file. Thread-safe; several processes may have it open.

    WAL with synchronous FULL: what was committed survives the end of the process and a power
    failure. One thread makes all changes. Changes that arrive during a commit are committed
    together by the next one, so many threads share an fsync. Readers never wait for it.

    Args:
        path: the file; it and its directory are created if missing, private to the user.
        read_only: nothing is created or written; a file of an earlier release is migrated.

    Raises:
        LedgerError: by every method: the file cannot be opened, read or written, is of a version
            that this program cannot use (then it is left untouched), lies on a network file system,
            or was deleted or replaced while it was open (then nothing is written any more).
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._log_path = path.with_name(path.name + "-wal")
        #: Held by the thread that uses the connection.
        self._connection_lock = threading.Lock()
        #: The thread that is making changes.
        self._changing: int | None = None
        #: Guards the following; the writer waits on it. If both locks are needed, it is taken
        #: first.
        self._state = threading.Condition()
        self._queue: list[_Change[Any]] = []
        self._writer: threading.Thread | None = None
        self._readers: list[sqlite3.Connection] = []
        self._is_closed = False
        self._next_log_wait = -math.inf
        #: Why the last attempt to write the file failed; None: it succeeded.
        self.failing: str | None = None
        self._read_only = read_only
        kind = network_filesystem(path.parent)
        if kind is not None:
            raise LedgerError(
                f"the ledger cannot be kept in {path.parent}: that is a network file system "
                f"({kind}), where SQLite's locks do not hold; set dir in the section [state] to "
                "a directory on a local disk"
            )
        try:
            self._connection = open_to_read(path) if read_only else open_to_write(path)
            try:
                if read_only and version(path, self._connection) < VERSION:
                    open_to_write(path).close()
                self._data_version = _data_version(self._connection)
                self._place = _place_of(path)
            except BaseException:
                self._connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(explain(path, "opened", error)) from error

    def close(self) -> None:
        """Close the file after all waiting changes are committed."""
        with self._state:
            self._is_closed = True
            self._state.notify_all()
        if self._writer is not None:
            self._writer.join()
        with self._state, self._connection_lock:
            for connection in (self._connection, *self._readers):
                connection.close()
            self._readers.clear()

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``change(connection)`` returns, once that is on the disk.

        The change runs in another thread and shares a transaction with other changes. It should use
        nothing but the connection, and must not call :meth:`write`. An exception that it raises is
        raised here, and undoes only this change; SQLite's own errors become LedgerError. If the
        calling thread is interrupted while it waits, the change is still made, unless the process
        ends first.
        """
        if self._read_only:
            raise LedgerError(f"the ledger {self.path} is open only for reading")
        if self._changing == threading.get_ident():
            raise RuntimeError("a change of the ledger cannot be made inside another one")
        mine = _Change(change)
        if self._enqueue(mine):
            mine.is_over.wait()
        else:
            with self._connection_lock:
                self._check_open()
                self._commit([mine])
        if isinstance(mine.error, sqlite3.Error):
            raise LedgerError(explain(self.path, "written", mine.error)) from mine.error
        if mine.error is not None:
            raise mine.error
        return cast("T", mine.result)

    def execute(self, statement: str, *rows: Values) -> int:
        """Carry out a statement for each of ``rows``; return how many rows of its table it changed.

        Many become several changes, so that others can come in between.
        """
        return sum(
            self.write(partial(_execute, statement, rows[start : start + CHUNK]))
            for start in range(0, len(rows), CHUNK)
        )

    def rows(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a query, as of one moment."""
        with self.read(once=True) as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def read(self, *, once: bool = False) -> Iterator[sqlite3.Connection]:
        """Lend a read-only connection that sees the ledger as of one moment.

        ``once``: for one statement, whose rows are all taken. That sees one moment by itself, and
        takes half the time without a transaction around it.
        """
        try:
            connection = self._take_reader()
            try:
                if not once:
                    connection.execute("BEGIN")
                yield connection
            finally:
                self._put_back(connection)
        except sqlite3.Error as error:
            raise LedgerError(explain(self.path, "read", error)) from error

    def has_its_place(self) -> bool:
        """Return whether the file still has its name: it was neither deleted nor replaced.

        SQLite goes on with a file without a name, and all of it is lost when the process ends. So
        nothing is written from then on.
        """
        try:
            return _place_of(self.path) == self._place
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # the directory cannot be searched: that may pass
            return True

    def data_version(self) -> int:
        """Return a number that changes when another process (or Store) has committed.

        It does not wait for a commit of this Store; it looks at one in progress as not yet made.
        """
        self._check_open()
        if self._connection_lock.acquire(blocking=False):
            try:
                self._data_version = _data_version(self._connection)
            except sqlite3.Error as error:
                raise LedgerError(explain(self.path, "read", error)) from error
            finally:
                self._connection_lock.release()
        return self._data_version

    def _enqueue(self, change: _Change[T]) -> bool:
        """Give the change to the writer; False if there is none and no thread can be started."""
        with self._state:
            self._check_open()
            if self._writer is None or not self._writer.is_alive():
                try:
                    self._writer = start(self._commit_queue, "ledger-writer")
                except RuntimeError:
                    return False
            self._queue.append(change)
            self._state.notify()
            return True

    def _commit_queue(self) -> None:
        """Commit the queued changes, all at once, until the store is closed."""
        while group := self._next_group():
            try:
                with self._connection_lock:
                    self._commit(group)
            finally:
                while group:  # do not keep 100,000 jobs until the next group comes
                    group.pop(0).is_over.set()
            os.sched_yield()  # the callers may come with their next changes

    def _next_group(self) -> list[_Change[Any]]:
        """Wait for changes, and return all that have arrived; none if the store was closed."""
        with self._state:
            self._state.wait_for(lambda: self._queue or self._is_closed)
            group, self._queue = self._queue, []
            return group

    def _commit(self, group: Sequence[_Change[Any]]) -> None:
        """Make the changes in one transaction; if it fails, each of them gets the error."""
        connection = self._connection
        self._changing = threading.get_ident()
        try:
            self._check_place()
            connection.execute("BEGIN IMMEDIATE")
            self._data_version = _data_version(connection)
            before = connection.total_changes
            for change in group:
                change.run(connection)
            connection.execute("COMMIT")
            if connection.total_changes > before:  # otherwise nothing had to be written
                self.failing = None
        except BaseException as error:  # noqa: BLE001  (raised in the threads that wait)
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            for change in group:
                change.error = error
        self._changing = None
        for change in group:
            if isinstance(change.error, sqlite3.OperationalError):
                self.failing = explain(self.path, "written", change.error)
        self._bound_log(connection)

    def _bound_log(self, connection: sqlite3.Connection) -> None:
        """Restart the write-ahead log if overlapping readers have prevented that."""
        try:
            if self._log_path.stat().st_size < LOG_LIMIT:
                return
        except OSError:
            return
        now = time.monotonic()
        if now < self._next_log_wait:
            return
        self._next_log_wait = now + LOG_PAUSE
        # A reader in another process may prevent it; there will be another chance.
        with suppress(sqlite3.Error):
            connection.execute(f"PRAGMA busy_timeout = {LOG_WAIT * 1000:.0f}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with suppress(sqlite3.Error):
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT * 1000:.0f}")

    def _take_reader(self) -> sqlite3.Connection:
        with self._state:
            self._check_open()
            if self._readers:
                return self._readers.pop()
        connection = open_to_read(self.path)
        try:
            self._check_place()  # it may be another ledger's file
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _put_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            return
        with self._state:
            if not self._is_closed and len(self._readers) < IDLE_READERS:
                self._readers.append(connection)
                return
        connection.close()

    def _check_place(self) -> None:
        if not self.has_its_place():
            raise sqlite3.OperationalError(DELETED)

    def _check_open(self) -> None:
        if self._is_closed:
            raise LedgerError(f"the ledger {self.path} was closed")


def _execute(statement: str, rows: Sequence[Values], connection: sqlite3.Connection) -> int:
    return connection.executemany(statement, rows).rowcount


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _place_of(path: Path) -> tuple[int, int]:
    """Return device and inode of the file that has this name now; raises OSError."""
    found = path.stat()
    return found.st_dev, found.st_ino
