"""The ledger: an SQLite file written by several threads and processes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from boinc_gahp.config.urls import url_identity
from boinc_gahp.ledger._requests import Postponing
from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.rows import OF_SUBMIT, batch_rows
from boinc_gahp.ledger.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from boinc_gahp.ledger.rows import BatchRow


class Ledger(Postponing):
    """Data that must outlive a process that handles BOINC_* requests: batches and aborted jobs.

    Rows belong to a project (by any of its addresses,
    :func:`~boinc_gahp.config.urls.url_identity`) and an account (:attr:`Authenticator.account`,
    never the authenticator). Every method may be called from any thread, by several processes at
    once; a write has reached the disk when its method returns (WAL, synchronous FULL).

    Raises:
        LedgerError: by every method; see :class:`~boinc_gahp.ledger.store.Store`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        #: The file, with everything else that is stored in it.
        self.store = Store(path)

    def close(self) -> None:
        """Close the file; its contents stay."""
        self.store.close()

    # Jobs that boinc_gahp has aborted.

    def record_aborted(
        self,
        project_url: str,
        account: str,
        job_names: Iterable[str],
        batch_name: str | None = None,
    ) -> None:
        """Remember that these jobs were aborted; with ``batch_name`` if it is known."""
        batch = None if batch_name is None else text(batch_name)
        now = time.time()
        rows = [(project_url, account, text(name), batch, now) for name in job_names]
        self.store.execute(
            "INSERT INTO aborted_job (project_url, account, job_name, batch_name, recorded) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
            "SET batch_name = coalesce(excluded.batch_name, batch_name)",
            *rows,
        )

    def aborted_jobs(self, project_url: str, account: str) -> frozenset[str]:
        """Return the names of the aborted jobs whose batch was not retired yet."""
        rows = self.store.rows(
            "SELECT job_name FROM aborted_job WHERE identity = ? AND account = ?",
            url_identity(project_url),
            account,
        )
        return frozenset(name for (name,) in rows)

    def learn_batch(
        self, project_url: str, account: str, batch_name: str, job_names: Iterable[str]
    ) -> None:
        """Note that these aborted jobs are in ``batch_name``."""
        batch = text(batch_name)
        wanted = {text(name) for name in job_names}
        owner = url_identity(project_url), account
        # Called at every query of a batch: write only what is new.
        other = self.store.rows(
            "SELECT job_name FROM aborted_job WHERE identity = ? AND account = ? "
            "AND batch_name IS NOT ?",
            *owner,
            batch,
        )
        self.store.execute(
            "UPDATE aborted_job SET batch_name = ? "
            "WHERE identity = ? AND account = ? AND job_name = ?",
            *((batch, *owner, name) for (name,) in other if name in wanted),
        )

    def forget_aborted(self, project_url: str, account: str, batch_name: str) -> None:
        """Drop the aborted jobs of a batch that was retired."""
        self.store.execute(
            "DELETE FROM aborted_job WHERE identity = ? AND account = ? AND batch_name = ?",
            (url_identity(project_url), account, text(batch_name)),
        )

    # Aborts and retirements that failed, and that nobody will ask for again.

    def record_owed(
        self, project_url: str, account: str, command: str, names: Iterable[str]
    ) -> None:
        """Remember that jobs are to be aborted, or batches retired.

        Args:
            project_url: the project.
            account: the account.
            command: ``abort`` or ``retire``.
            names: of the jobs or batches.
        """
        now = time.time()
        self.store.execute(
            "INSERT OR IGNORE INTO owed_request (project_url, account, command, name, recorded) "
            "VALUES (?, ?, ?, ?, ?)",
            *((project_url, account, command, text(name), now) for name in names),
        )

    def owed(self, project_url: str, account: str, command: str) -> tuple[str, ...]:
        """Return the names of the jobs or batches of :meth:`record_owed`."""
        rows = self.store.rows(
            "SELECT name FROM owed_request WHERE identity = ? AND account = ? AND command = ?",
            url_identity(project_url),
            account,
            command,
        )
        return tuple(name for (name,) in rows)

    def owed_done(self, project_url: str, account: str, command: str, names: Iterable[str]) -> None:
        """Drop what is not owed any more."""
        self.store.execute(
            "DELETE FROM owed_request "
            "WHERE identity = ? AND account = ? AND command = ? AND name = ?",
            *((url_identity(project_url), account, command, text(name)) for name in names),
        )

    # BOINC_SUBMIT's batches: submissions under way, and pending aborts.

    def begin_submit(
        self, project_url: str, account: str, batch_name: str, batch_id: int, abort_at: float
    ) -> bool:
        """Note that submit_batch is about to be sent; ``abort_at`` in seconds since the epoch.

        If the daemon dies before :meth:`end_submit`, the next one finds the note.

        Returns:
            Whether it may be sent: not if an abort of the batch is pending, which stays so.
        """
        row = (project_url, account, batch_id, text(batch_name), "sent", abort_at)
        changed = self.store.execute(
            f"{_NOTE}, sent = excluded.sent WHERE state = 'sent'", (*row, *(time.time(),) * 3)
        )
        return changed == 1

    def put_off(self, project_url: str, account: str, batch_name: str, until: float) -> None:
        """Do not abort a submission before ``until``, since the batch is asked about."""
        self.store.execute(
            f"UPDATE batch SET not_before = ? WHERE {OF_SUBMIT} "  # noqa: S608
            "AND name = ? AND state = 'sent' AND not_before < ?",
            (until, url_identity(project_url), account, text(batch_name), until),
        )

    def end_submit(self, project_url: str, account: str, batch_name: str) -> None:
        """Delete the record of a submission: it succeeded, or HTCondor has asked for the batch."""
        self.store.execute(
            f"DELETE FROM batch WHERE {OF_SUBMIT} AND name = ? AND state = 'sent'",  # noqa: S608
            (url_identity(project_url), account, text(batch_name)),
        )

    def record_abort(
        self, project_url: str, account: str, batch_name: str, batch_id: int, not_before: float
    ) -> None:
        """Note that the batch must be aborted, not before then; replaces begin_submit's note."""
        row = (project_url, account, batch_id, text(batch_name), "giving_up", not_before)
        self.store.execute(_NOTE, (*row, *(time.time(),) * 3))

    def begin_abort(self, batch: BatchRow, not_before: float) -> bool:
        """Turn a submission's note, as :meth:`pending_aborts` returned it, into a pending abort.

        Returns:
            Whether the note was unchanged; if not, another process is working on it.
        """
        changed = self.store.execute(
            "UPDATE batch SET state = 'giving_up', not_before = ? "
            "WHERE id = ? AND state = 'sent' AND not_before = ?",
            (not_before, batch.id, batch.not_before),
        )
        return changed == 1

    def pending_aborts(self, project_url: str, account: str, now: float) -> tuple[BatchRow, ...]:
        """Return BOINC_SUBMIT's batches, soonest first; those due before ``now`` come first."""
        return tuple(
            self._batch_rows(
                f"WHERE {OF_SUBMIT} ORDER BY batch.not_before > ?, batch.not_before, "
                "batch.project_batch_id",
                url_identity(project_url),
                account,
                now,
            )
        )

    def abort_done(self, project_url: str, account: str, batch_id: int | None) -> None:
        """Drop the pending abort of a batch; ``batch_id``: the project's id."""
        self.store.execute(
            f"DELETE FROM batch WHERE {OF_SUBMIT} AND project_batch_id = ?",  # noqa: S608
            (url_identity(project_url), account, batch_id),
        )


def all_pending_aborts(store: Store) -> list[BatchRow]:
    """Return BOINC_SUBMIT's batches that may be under way, or have to be aborted."""
    with store.read() as connection:
        return batch_rows(
            connection,
            "WHERE batch.project_id IS NULL "
            "ORDER BY batch.project_url, batch.project_account, batch.not_before",
        )


#: Writes a batch of BOINC_SUBMIT, replacing any note of it.
_NOTE: Final = (
    "INSERT INTO batch (project_url, project_account, project_batch_id, name, state, not_before, "
    "sent, created, changed, app_name, group_key, lease_until) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', 0) "
    "ON CONFLICT (identity, project_account, project_batch_id) WHERE project_id IS NULL "
    "DO UPDATE SET name = excluded.name, state = excluded.state, "
    "not_before = excluded.not_before, changed = excluded.changed"
)
