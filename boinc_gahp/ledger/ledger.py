"""The ledger: an SQLite file that several threads and processes write."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.filesystem import MOUNTINFO, network_filesystem
from boinc_gahp.ledger.migrations import MIGRATIONS, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: Seconds that a writer waits for another process's transaction.
BUSY_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Debt:
    """Something owed to a project.

    Attributes:
        batch_name: the batch, by the name it was submitted under.
        batch_id: the batch, by the project's id.
        kind: ``submitting``: a submit_batch may be under way, or its submitter died; ``abort``:
            an abort_batch is owed.
        due: for ``submitting`` when its submitter gives up, for ``abort`` the time before which
            it must not be paid; seconds since the epoch.
    """

    batch_name: str
    batch_id: int
    kind: Literal["submitting", "abort"]
    due: float


class Ledger:
    """What must outlive the process: debts to projects, and the jobs that were aborted.

    Rows belong to a project (its URL) and an account (:attr:`Authenticator.account`, never the
    authenticator). Every method may be called from any thread, by several processes at once; a
    write has reached the disk when its method returns (WAL, synchronous FULL).

    Raises:
        LedgerError: by every method: the file cannot be opened, read or written, is of a later
            version (then it is left untouched), or lies on a network file system.
    """

    def __init__(self, path: Path, *, mountinfo: Path = MOUNTINFO) -> None:
        self.path = path
        self._lock = threading.Lock()
        kind = network_filesystem(path.parent, mountinfo)
        if kind is not None:
            raise LedgerError(
                f"the ledger cannot be kept in {path.parent}: that is a network file system "
                f"({kind}), where SQLite's locks do not hold; set dir in the section [state] to "
                "a directory on a local disk"
            )
        try:
            self._connection: sqlite3.Connection | None = _open(path)
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(_explain(path, "opened", error)) from error

    def close(self) -> None:
        """Close the file; what was recorded stays."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    # Jobs that boinc_gahp has aborted.

    def record_aborted(
        self,
        project_url: str,
        account: str,
        job_names: Iterable[str],
        batch_name: str | None = None,
    ) -> None:
        """Remember that these jobs were aborted; ``batch_name`` where it is known."""
        batch = None if batch_name is None else _text(batch_name)
        now = time.time()
        rows = [(project_url, account, _text(name), batch, now) for name in job_names]
        with self._write() as connection:
            connection.executemany(
                "INSERT INTO aborted_job (project_url, account, job_name, batch_name, recorded) "
                "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET batch_name = coalesce(excluded.batch_name, batch_name)",
                rows,
            )

    def aborted_jobs(self, project_url: str, account: str) -> frozenset[str]:
        """Return the names of the jobs that were aborted and whose batch was not retired yet."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT job_name FROM aborted_job WHERE project_url = ? AND account = ?",
                (project_url, account),
            )
            return frozenset(name for (name,) in rows)

    def learn_batch(
        self, project_url: str, account: str, batch_name: str, job_names: Iterable[str]
    ) -> None:
        """Note that these aborted jobs turned out to be in ``batch_name``."""
        batch = _text(batch_name)
        wanted = {_text(name) for name in job_names}
        with self._read() as connection:
            # Asked at every query of a batch: write only where there is something to learn.
            rows = connection.execute(
                "SELECT job_name FROM aborted_job WHERE project_url = ? AND account = ? "
                "AND batch_name IS NOT ?",
                (project_url, account, batch),
            )
            new = [name for (name,) in rows if name in wanted]
        if not new:
            return
        with self._write() as connection:
            connection.executemany(
                "UPDATE aborted_job SET batch_name = ? "
                "WHERE project_url = ? AND account = ? AND job_name = ?",
                [(batch, project_url, account, name) for name in new],
            )

    def forget_aborted(self, project_url: str, account: str, batch_name: str) -> None:
        """Drop the aborted jobs of a batch that was retired."""
        with self._write() as connection:
            connection.execute(
                "DELETE FROM aborted_job WHERE project_url = ? AND account = ? AND batch_name = ?",
                (project_url, account, _text(batch_name)),
            )

    # Submissions under way, and aborts owed.

    def begin_submit(
        self, project_url: str, account: str, batch_name: str, batch_id: int, give_up_at: float
    ) -> bool:
        """Note that submit_batch is about to be sent; ``give_up_at`` in seconds since the epoch.

        A daemon that dies before :meth:`end_submit` leaves the note to the next one.

        Returns:
            Whether it may be sent: not if by now an abort of the batch is owed. That stays owed.
        """
        debt = Debt(batch_name, batch_id, "submitting", give_up_at)
        return self._owe(project_url, account, debt, instead_of="submitting")

    def end_submit(self, project_url: str, account: str, batch_name: str) -> None:
        """Drop the note of a submission: it went well, or the batch was asked about again."""
        with self._write() as connection:
            connection.execute(
                "DELETE FROM debt WHERE project_url = ? AND account = ? AND batch_name = ? "
                "AND kind = 'submitting'",
                (project_url, account, _text(batch_name)),
            )

    def owe_abort(
        self, project_url: str, account: str, batch_name: str, batch_id: int, not_before: float
    ) -> None:
        """Note that the batch has to be aborted, not before then; replaces begin_submit's note."""
        self._owe(project_url, account, Debt(batch_name, batch_id, "abort", not_before))

    def give_up(self, project_url: str, account: str, debt: Debt, not_before: float) -> bool:
        """Turn a submission's note, as :meth:`debts` gave it, into an abort that is owed.

        Returns:
            Whether it was still as it was: else somebody is at it.
        """
        with self._write() as connection:
            changed = connection.execute(
                "UPDATE debt SET kind = 'abort', due = ? WHERE project_url = ? AND account = ? "
                "AND batch_id = ? AND kind = 'submitting' AND due = ?",
                (not_before, project_url, account, debt.batch_id, debt.due),
            )
            return changed.rowcount == 1

    def debts(self, project_url: str, account: str, now: float) -> tuple[Debt, ...]:
        """Return all that is owed, soonest first; what is due before ``now`` comes first of all."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT batch_name, batch_id, kind, due FROM debt "
                "WHERE project_url = ? AND account = ? ORDER BY due > ?, due, batch_id",
                (project_url, account, now),
            )
            return tuple(Debt(*row) for row in rows)

    def paid(self, project_url: str, account: str, batch_id: int) -> None:
        """Drop what was owed for a batch."""
        with self._write() as connection:
            connection.execute(
                "DELETE FROM debt WHERE project_url = ? AND account = ? AND batch_id = ?",
                (project_url, account, batch_id),
            )

    def _owe(
        self, project_url: str, account: str, debt: Debt, *, instead_of: str | None = None
    ) -> bool:
        """Write a debt down, in the place of any other of the batch (or only of that kind).

        Returns:
            Whether it was written.
        """
        row = (debt.batch_id, _text(debt.batch_name), debt.kind, debt.due, time.time())
        with self._write() as connection:
            changed = connection.execute(
                "INSERT INTO debt "
                "(project_url, account, batch_id, batch_name, kind, due, recorded) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "batch_name = excluded.batch_name, kind = excluded.kind, due = excluded.due "
                "WHERE kind = coalesce(?, kind)",
                (project_url, account, *row, instead_of),
            )
            return changed.rowcount == 1

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Hold the one transaction that a change is made in: all of it is kept, or none."""
        with self._use("written") as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with self._use("read") as connection:
            yield connection

    @contextmanager
    def _use(self, verb: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None:
                raise LedgerError(f"the ledger {self.path} was closed")
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise LedgerError(_explain(self.path, verb, error)) from error


def _open(path: Path) -> sqlite3.Connection:
    """Return a connection to an up-to-date ledger, made if need be."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # A copy put back by hand may have come with other permissions; SQLite gives its -wal and
        # -shm files those of the file itself.
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    _refuse_later_version(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")
        _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_later_version(path: Path) -> None:
    # Read-only: a later version's file, its journal mode included, must stay as it is.
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT)
    try:
        found = _version(connection)
    finally:
        connection.close()
    if found > VERSION:
        raise LedgerError(
            f"the ledger {path} is of version {found}, this program knows versions up to "
            f"{VERSION}: install a later boinc_gahp, or set another dir in the section [state]"
        )


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite does not wait by itself when another process does so at this moment."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    pause = threading.Event()
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # "database is locked", "locking protocol"; waiting makes no room on a full disk.
            if "lock" not in str(error) or time.monotonic() > deadline:
                raise
            pause.wait(0.02)
        else:
            return


def _migrate(connection: sqlite3.Connection) -> None:
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Again, now that no other process can be at it.
        for number in range(_version(connection) + 1, VERSION + 1):
            for statement in MIGRATIONS[number - 1]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _text(name: str) -> str:
    """Return a name that SQLite can hold: bytes that are no UTF-8 become question marks.

    No project has a job or batch of such a name, so nothing that matters is lost.
    """
    return name.encode("utf-8", "replace").decode("utf-8")


def _explain(path: Path, verb: str, error: Exception) -> str:
    """Return what to tell the person who keeps the state directory."""
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
        remedy = "it is no ledger: move it away"
    elif isinstance(error, OSError) and error.strerror:
        remedy = f"{error.strerror}; check the directory, or set another dir in [state]"
    else:
        remedy = f"{error}; check the disk's free space and the directory's permissions"
    return f"the ledger {path} cannot be {verb}: {remedy}"
