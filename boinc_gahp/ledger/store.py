"""One SQLite file that many threads and several processes write: one thread commits, any reads."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.filesystem import MOUNTINFO, network_filesystem
from boinc_gahp.ledger.migrations import VERSION
from boinc_gahp.ledger.opening import BUSY_TIMEOUT, explain, open_to_read, open_to_write
from boinc_gahp.ledger.place import place_of, put_back
from boinc_gahp.ledger.upgrading import Copy, check_version
from boinc_gahp.threads import start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

T = TypeVar("T")

#: Connections for reading that are kept open; each holds up to 2 MB of pages.
IDLE_READERS = 4

#: Bytes of write-ahead log from which on readers are waited for, so that it can begin anew.
LOG_LIMIT = 16 * 1024 * 1024

#: Seconds that they are waited for, and between two such waits.
LOG_WAIT, LOG_PAUSE = 0.25, 5.0


class _Change(Generic[T]):
    """A change that waits for its commit, and what came of it."""

    def __init__(self, change: Callable[[sqlite3.Connection], T]) -> None:
        self._change = change
        self.result: T | None = None
        self.error: BaseException | None = None
        #: Set when it is on the disk, or has failed.
        self.is_over = threading.Event()

    def run(self, connection: sqlite3.Connection) -> None:
        """Make the change inside the transaction; what it raises undoes it alone.

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

    WAL with synchronous FULL: what was committed outlives the process and the machine's power.
    One thread makes all changes. Those that come while it commits are committed together by the
    next commit, so that many threads share an fsync. Readers never wait for it.

    Args:
        path: the file; it and its directory are made if they are missing, private to the user.
        mountinfo: the kernel's list of mounts.
        read_only: nothing is made, migrated or written; of an earlier version's file a copy is
            read, as of this moment.

    Raises:
        LedgerError: by every method: the file cannot be opened, read or written, is of a later
            version (then it is left untouched), or lies on a network file system.
    """

    def __init__(self, path: Path, *, mountinfo: Path = MOUNTINFO, read_only: bool = False) -> None:
        self.path = path
        self._log_path = path.with_name(path.name + "-wal")
        #: Held while the connection is used, by whichever thread.
        self._connection_lock = threading.Lock()
        #: The thread that is making changes.
        self._changing: int | None = None
        #: Guards what follows; the writer waits on it. Where both locks are held it is taken first.
        self._state = threading.Condition()
        self._queue: list[_Change[Any]] = []
        self._writer: threading.Thread | None = None
        self._readers: list[sqlite3.Connection] = []
        self._is_closed = False
        self._next_log_wait = 0.0
        #: Counts the files that it has had.
        self.generation = 1
        #: Why the file cannot be written, as far as it was tried; None: it can.
        self.failing: str | None = None
        self._read_only = read_only
        self._read_path = path
        self._copy: Copy | None = None
        kind = network_filesystem(path.parent, mountinfo)
        if kind is not None:
            raise LedgerError(
                f"the ledger cannot be kept in {path.parent}: that is a network file system "
                f"({kind}), where SQLite's locks do not hold; set dir in the section [state] to "
                "a directory on a local disk"
            )
        try:
            self._connection = open_to_read(path) if read_only else open_to_write(path)
            try:
                if read_only and check_version(path, self._connection) < VERSION:
                    self._read_a_copy()
                self._data_version = _data_version(self._connection)
                self._place = place_of(path)
            except BaseException:
                self._connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(explain(path, "opened", error)) from error

    def close(self) -> None:
        """Close the file once all changes that wait are committed; what was written stays."""
        with self._state:
            self._is_closed = True
            self._state.notify_all()
        if self._writer is not None:
            self._writer.join()
        with self._state, self._connection_lock:
            for connection in (self._connection, *self._readers):
                connection.close()
            self._readers.clear()
            if self._copy is not None:
                self._copy.close()

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``change(connection)`` returns, once that is on the disk.

        The change runs in another thread, and shares a transaction with others' changes: it should
        touch nothing but the connection, and must not call :meth:`write`. What it raises is raised
        here, and undoes this change alone; SQLite's own errors become LedgerError. If the calling
        thread is interrupted while it waits, the change is made all the same, unless the process
        ends first.
        """
        if self._read_only:
            raise LedgerError(f"the ledger {self.path} is open only to be read")
        if self._changing == threading.get_ident():
            raise RuntimeError("a change of the ledger cannot wait for another one")
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

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that sees the ledger as of one moment; it cannot write."""
        try:
            connection, generation = self._take_reader()
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                self._put_back(connection, generation)
        except sqlite3.Error as error:
            raise LedgerError(explain(self.path, "read", error)) from error

    def keep_place(self) -> Literal["kept", "put back", "replaced"]:
        """See whether the file still has its name; give it back to a file that was deleted.

        A file that was replaced by another one stays as it is, and is lost with this process.
        """
        self._check_open()
        try:
            if place_of(self.path) == self._place:
                return "kept"
            # With both locks nothing is written until the file has its name again.
            with self._state, self._connection_lock:
                return "put back" if self._put_back_file() else "replaced"
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(explain(self.path, "put back", error)) from error

    def _put_back_file(self) -> bool:
        """Go on with a file that has the name; tell whether it could be made, and nobody else's."""
        self._check_open()
        now = place_of(self.path)
        if now is not None:
            return now == self._place  # another thread was quicker
        if not put_back(self._connection, self.path):
            return False
        before = [self._connection, *self._readers]
        try:
            self._connection = open_to_write(self.path)
        except BaseException:
            # What is written until the next look would not be in it.
            self.path.unlink(missing_ok=True)
            raise
        self._place = place_of(self.path)
        self._data_version = _data_version(self._connection)
        self._readers.clear()
        self.generation += 1
        # SQLite lets the log alone that has the name of theirs now: it sees that they moved.
        for connection in before:
            connection.close()
        return True

    def data_version(self) -> int:
        """Return a number that changes when another process (or Store) has committed.

        It never waits for a commit of this Store; one that is under way is looked at before it.
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

    def _read_a_copy(self) -> None:
        self._copy = Copy(self._connection)
        self._connection.close()
        self._connection, self._read_path = self._copy.connection, self._copy.path

    def _enqueue(self, change: _Change[T]) -> bool:
        """Hand the change to the writer; False if there is none, and the system gives no thread."""
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
        """Commit what is in the queue, all of it at once, until the store is closed."""
        while group := self._next_group():
            try:
                with self._connection_lock:
                    self._commit(group)
            finally:
                while group:  # 100,000 jobs are not kept until the next group comes
                    group.pop(0).is_over.set()
            os.sched_yield()  # those who were told may come with their next changes

    def _next_group(self) -> list[_Change[Any]]:
        """Wait for changes, and return all that are there; none if the store was closed."""
        with self._state:
            self._state.wait_for(lambda: self._queue or self._is_closed)
            group, self._queue = self._queue, []
            return group

    def _commit(self, group: Sequence[_Change[Any]]) -> None:
        """Make the changes in one transaction; if it fails, each of them has the error."""
        connection = self._connection
        self._changing = threading.get_ident()
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._data_version = _data_version(connection)
            before = connection.total_changes
            for change in group:
                change.run(connection)
            connection.execute("COMMIT")
            if connection.total_changes > before:  # else nothing had to be written
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
        """Let the write-ahead log begin anew if readers that overlap have kept it from that."""
        try:
            if self._log_path.stat().st_size < LOG_LIMIT:
                return
        except OSError:
            return
        now = time.monotonic()
        if now < self._next_log_wait:
            return
        self._next_log_wait = now + LOG_PAUSE
        # A reader of another process may be in the way; there is a next time.
        with suppress(sqlite3.Error):
            connection.execute(f"PRAGMA busy_timeout = {LOG_WAIT * 1000:.0f}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with suppress(sqlite3.Error):
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT * 1000:.0f}")

    def _take_reader(self) -> tuple[sqlite3.Connection, int]:
        with self._state:
            self._check_open()
            generation = self.generation
            if self._readers:
                return self._readers.pop(), generation
        return open_to_read(self._read_path), generation

    def _put_back(self, connection: sqlite3.Connection, generation: int) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            return
        with self._state:
            is_current = generation == self.generation and not self._is_closed
            if is_current and len(self._readers) < IDLE_READERS:
                self._readers.append(connection)
                return
        connection.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise LedgerError(f"the ledger {self.path} was closed")


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])
