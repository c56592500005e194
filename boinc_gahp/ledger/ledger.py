"""The ledger: an SQLite file that several threads and processes write."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from boinc_gahp.config.urls import identity
from boinc_gahp.ledger.filesystem import MOUNTINFO
from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Debt:
    """Something owed to a project.

    Attributes:
        batch_name: the batch, by the name it was submitted under.
        batch_id: the batch, by the project's id.
        kind: ``submitting``: a submit_batch may be under way, or its submitter died; ``abort``:
            an abort_batch is owed.
        due: for ``submitting`` when its submitter gives up, or HTCondor last asked for the batch
            after that; for ``abort`` the time before which it must not be paid; seconds since the
            epoch.
        sent: when the last submit_batch of the batch was about to be sent, or, where that is not
            known, when the debt was first written down; seconds since the epoch.
    """

    batch_name: str
    batch_id: int
    kind: Literal["submitting", "abort"]
    due: float
    sent: float = field(default=0.0, compare=False)


class Ledger:
    """What must outlive the process: debts to projects, and the jobs that were aborted.

    Rows belong to a project (by any of its addresses, :func:`boinc_gahp.config.urls.identity`) and
    an account (:attr:`Authenticator.account`, never the authenticator). Every method may be called
    from any thread, by several processes at once; a write has reached the disk when its method
    returns (WAL, synchronous FULL).

    Raises:
        LedgerError: by every method: the file cannot be opened, read or written, is of a later
            version (then it is left untouched), or lies on a network file system.
    """

    def __init__(self, path: Path, *, mountinfo: Path = MOUNTINFO) -> None:
        self.path = path
        #: The file, with what else is kept in it.
        self.store = Store(path, mountinfo=mountinfo)

    def close(self) -> None:
        """Close the file; what was recorded stays."""
        self.store.close()

    # Jobs that boinc_gahp has aborted.

    def record_aborted(
        self,
        project_url: str,
        account: str,
        job_names: Iterable[str],
        batch_name: str | None = None,
    ) -> None:
        """Remember that these jobs were aborted; ``batch_name`` where it is known."""
        batch = None if batch_name is None else text(batch_name)
        now = time.time()
        rows = [(project_url, account, text(name), batch, now) for name in job_names]
        self._change(
            "INSERT INTO aborted_job (project_url, account, job_name, batch_name, recorded) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
            "SET batch_name = coalesce(excluded.batch_name, batch_name)",
            *rows,
        )

    def aborted_jobs(self, project_url: str, account: str) -> frozenset[str]:
        """Return the names of the jobs that were aborted and whose batch was not retired yet."""
        with self.store.read() as connection:
            rows = connection.execute(
                "SELECT job_name FROM aborted_job WHERE identity = ? AND account = ?",
                (identity(project_url), account),
            )
            return frozenset(name for (name,) in rows)

    def learn_batch(
        self, project_url: str, account: str, batch_name: str, job_names: Iterable[str]
    ) -> None:
        """Note that these aborted jobs turned out to be in ``batch_name``."""
        batch = text(batch_name)
        wanted = {text(name) for name in job_names}
        with self.store.read() as connection:
            # Asked at every query of a batch: write only where there is something to learn.
            rows = connection.execute(
                "SELECT job_name FROM aborted_job WHERE identity = ? AND account = ? "
                "AND batch_name IS NOT ?",
                (identity(project_url), account, batch),
            )
            new = [name for (name,) in rows if name in wanted]
        if not new:
            return
        self._change(
            "UPDATE aborted_job SET batch_name = ? "
            "WHERE identity = ? AND account = ? AND job_name = ?",
            *((batch, identity(project_url), account, name) for name in new),
        )

    def forget_aborted(self, project_url: str, account: str, batch_name: str) -> None:
        """Drop the aborted jobs of a batch that was retired."""
        self._change(
            "DELETE FROM aborted_job WHERE identity = ? AND account = ? AND batch_name = ?",
            (identity(project_url), account, text(batch_name)),
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

    def put_off(self, project_url: str, account: str, batch_name: str, until: float) -> None:
        """Let a submission not be given up before ``until``: the batch is asked about."""
        self._change(
            "UPDATE debt SET due = ? WHERE project_url = ? AND account = ? AND batch_name = ? "
            "AND kind = 'submitting' AND due < ?",
            (until, project_url, account, text(batch_name), until),
        )

    def end_submit(self, project_url: str, account: str, batch_name: str) -> None:
        """Drop the note of a submission: it went well, or the batch was asked about again."""
        self._change(
            "DELETE FROM debt WHERE identity = ? AND account = ? AND batch_name = ? "
            "AND kind = 'submitting'",
            (identity(project_url), account, text(batch_name)),
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
        changed = self._change(
            "UPDATE debt SET kind = 'abort', due = ? WHERE identity = ? AND account = ? "
            "AND batch_id = ? AND kind = 'submitting' AND due = ?",
            (not_before, identity(project_url), account, debt.batch_id, debt.due),
        )
        return changed == 1

    def debts(self, project_url: str, account: str, now: float) -> tuple[Debt, ...]:
        """Return all that is owed, soonest first; what is due before ``now`` comes first of all."""
        with self.store.read() as connection:
            rows = connection.execute(
                "SELECT batch_name, batch_id, kind, due, recorded FROM debt "
                "WHERE identity = ? AND account = ? ORDER BY due > ?, due, batch_id",
                (identity(project_url), account, now),
            )
            return tuple(Debt(*row) for row in rows)

    def paid(self, project_url: str, account: str, batch_id: int) -> None:
        """Drop what was owed for a batch."""
        self._change(
            "DELETE FROM debt WHERE identity = ? AND account = ? AND batch_id = ?",
            (identity(project_url), account, batch_id),
        )

    def _owe(
        self, project_url: str, account: str, debt: Debt, *, instead_of: str | None = None
    ) -> bool:
        """Write a debt down, in the place of any other of the batch (or only of that kind).

        Returns:
            Whether it was written.
        """
        row = (debt.batch_id, text(debt.batch_name), debt.kind, debt.due, time.time())
        changed = self._change(
            "INSERT INTO debt "
            "(project_url, account, batch_id, batch_name, kind, due, recorded) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "batch_name = excluded.batch_name, kind = excluded.kind, due = excluded.due, "
            "recorded = CASE excluded.kind WHEN 'submitting' THEN excluded.recorded "
            "ELSE recorded END "
            "WHERE kind = coalesce(?, kind)",
            (project_url, account, *row, instead_of),
        )
        return changed == 1

    def _change(self, statement: str, *rows: tuple[object, ...]) -> int:
        """Execute ``statement`` for each row; return how many rows of the table that changed."""
        return self.store.write(lambda connection: connection.executemany(statement, rows).rowcount)
