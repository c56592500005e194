"""One SQLite file that many threads and several processes write: group commit, and free readers."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.filesystem import MOUNTINFO, network_filesystem
from boinc_gahp.ledger.migrations import VERSION
from boinc_gahp.ledger.opening import BUSY_TIMEOUT, explain, open_to_read, open_to_write
from boinc_gahp.ledger.place import place_of, put_back
from boinc_gahp.ledger.upgrading import Copy, check_version

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
        self.error: Exception | None = None
        #: Whether it is on the disk, or failed for good.
        self.is_over = False

    def run(self, connection: sqlite3.Connection, path: Path) -> None:
        """Make the change inside the transaction; what it raises undoes it alone.

        Raises:
            sqlite3.Error: SQLite itself has undone the whole transaction (a full disk).
        """
        self.result, self.error = None, None
        connection.execute("SAVEPOINT change")
        try:
            self.result = self._change(connection)
        except Exception as error:
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO change")
            self.error = _translated(path, error)
        connection.execute("RELEASE change")

    def fail(self, error: Exception) -> None:
        self.error = error
        self.is_over = True


class Store:
    """The ledger's file. Thread-safe; several processes may have it open.

    WAL with synchronous FULL: what was committed outlives the process and the machine's power.
    Writers that come while a commit is under way are committed together by the next one, so that
    many threads share an fsync. Readers never wait for writers.

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
        # Guards everything below; waiting on it: for one's turn to commit.
        self._turn = threading.Condition()
        self._queue: list[_Change[Any]] = []
        self._leader: int | None = None
        self._under_way: list[_Change[Any]] = []
        self._readers: list[sqlite3.Connection] = []
        self._is_closed = False
        self._is_moving = False
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
        """Close the file once the commit under way is over; what was written stays."""
        with self._turn:
            self._turn.wait_for(lambda: self._leader is None)
            if not self._is_closed:
                self._is_closed = True
                for reader in self._readers:
                    reader.close()
                self._readers.clear()
                self._connection.close()
                if self._copy is not None:
                    self._copy.close()
            self._turn.notify_all()

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``change(connection)`` returns, once that is on the disk.

        The change runs in a transaction that it may share with others' changes, perhaps in
        another's thread, and perhaps twice (if the thread that ran it was interrupted before the
        commit): it should touch nothing but the connection, and must not call :meth:`write`.
        What it raises is raised here, is undone, and leaves the others' changes alone; SQLite's
        own errors become LedgerError.
        """
        if self._read_only:
            raise LedgerError(f"the ledger {self.path} is open only to be read")
        mine = _Change(change)
        thread = threading.get_ident()
        try:
            group = self._await_turn(mine, thread)
            if group:
                self._commit(group)
        finally:
            self._pass_on(mine, thread)
        if mine.error is not None:
            if isinstance(mine.error.__cause__, sqlite3.OperationalError):
                self.failing = str(mine.error)
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
        with self._turn:
            self._check_open()
            try:
                now = place_of(self.path)
                if now == self._place:
                    return "kept"
                if now is not None:
                    return "replaced"
                # Nobody leads any more once the one who does has: else there is always another.
                self._is_moving = True
                self._turn.wait_for(lambda: self._leader is None)
                return "put back" if self._put_back_file() else "replaced"
            except (sqlite3.Error, OSError) as error:
                raise LedgerError(explain(self.path, "put back", error)) from error
            finally:
                self._is_moving = False
                self._turn.notify_all()

    def _put_back_file(self) -> bool:
        """Go on with a file that has the name; tell whether it could be made, and nobody else's."""
        self._check_open()
        if place_of(self.path) == self._place:
            return True  # another thread was quicker
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
        with self._turn:
            self._check_open()
            if self._leader is None:
                try:
                    self._data_version = _data_version(self._connection)
                except sqlite3.Error as error:
                    raise LedgerError(explain(self.path, "read", error)) from error
            return self._data_version

    def _read_a_copy(self) -> None:
        self._copy = Copy(self._connection)
        self._connection.close()
        self._connection, self._read_path = self._copy.connection, self._copy.path

    def _await_turn(self, mine: _Change[T], thread: int) -> list[_Change[Any]]:
        """Wait until ``mine`` is over, or return the changes that this thread has to commit."""
        with self._turn:
            if self._leader == thread:
                raise RuntimeError("a change of the ledger cannot wait for another one")
            self._queue.append(mine)
            while (self._leader is not None or self._is_moving) and not mine.is_over:
                self._turn.wait()
            if mine.is_over:
                return []
            self._leader = thread
            group = list(self._queue)
            self._queue.clear()
            self._under_way = group
            return group

    def _pass_on(self, mine: _Change[T], thread: int) -> None:
        """Leave the queue, and let another thread lead if this one did."""
        with self._turn:
            if mine in self._queue:
                self._queue.remove(mine)
            if self._leader == thread:
                # Interrupted: what was undone is the others' to do.
                self._queue[:0] = [
                    change
                    for change in self._under_way
                    if not change.is_over and change is not mine
                ]
                self._leader = None
                self._turn.notify_all()

    def _commit(self, group: Sequence[_Change[Any]]) -> None:
        """Make the changes in one transaction; mark those that failed."""
        connection = self._connection
        is_committing = False
        try:
            self._check_open()
            connection.execute("BEGIN IMMEDIATE")
            self._data_version = _data_version(connection)
            before = connection.total_changes
            for change in group:
                change.run(connection, self.path)
            is_committing = True
            connection.execute("COMMIT")
            if connection.total_changes > before:  # else nothing had to be written
                self.failing = None
            for change in group:
                change.is_over = True
            self._bound_log(connection)
        except Exception as error:  # noqa: BLE001
            self._roll_back()
            for change in group:
                change.fail(_translated(self.path, error))
        except BaseException:
            if is_committing and not connection.in_transaction:
                for change in group:
                    change.is_over = True
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if not self._is_closed and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

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
        connection.execute(f"PRAGMA busy_timeout = {LOG_WAIT * 1000:.0f}")
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error:
            # A reader of another process; there is a next time.
            pass
        finally:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT * 1000:.0f}")

    def _take_reader(self) -> tuple[sqlite3.Connection, int]:
        with self._turn:
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
        with self._turn:
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


def _translated(path: Path, error: Exception) -> Exception:
    """Return the error as the ledger's callers know it; a new one for each of them."""
    if isinstance(error, sqlite3.Error):
        translated = LedgerError(explain(path, "written", error))
    elif isinstance(error, LedgerError):
        translated = LedgerError(str(error))
    else:
        return error
    translated.__cause__ = error
    return translated
