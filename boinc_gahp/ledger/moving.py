"""Moves everything of one owner to another: for a project's new address, or a new account."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.config import url_identity
from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.requests import Requests, owner_row
from boinc_gahp.ledger.rows import OF_SUBMIT, PROJECT_IDENTITY, project_id

if TYPE_CHECKING:
    import sqlite3


class Moved(NamedTuple):
    """How much :meth:`Moving.move` moved."""

    jobs: int
    batches: int
    submit_aborts: int


class Moving(Requests):
    """The changes for ``boinc_gahp ledger move``."""

    def accounts(self, url: str) -> list[str]:
        """Return the accounts with anything in the ledger for a project."""
        with self._store.read() as connection:
            rows = connection.execute(
                f"SELECT account FROM project WHERE {PROJECT_IDENTITY} = ? "  # noqa: S608
                "UNION SELECT project_account FROM batch WHERE project_id IS NULL AND identity = ? "
                "UNION SELECT account FROM aborted_job WHERE identity = ? ORDER BY account",
                (url_identity(url),) * 3,
            )
            return [account for (account,) in rows]

    def move(self, old: tuple[str, str], new: tuple[str, str], name: str) -> Moved:
        """Move everything of one owner to another, which may have jobs already.

        No process may be working for the old owner (:class:`~boinc_gahp.ledger.AccountLock`).

        Args:
            old: the old project URL and account.
            new: the new project URL and account.
            name: the new project's name in the settings; "" for the section ``[project]``.
        """
        was = (url_identity(old[0]), old[1])

        def change(connection: sqlite3.Connection) -> Moved:
            source = project_id(connection, *old)
            jobs = batches = 0
            target = owner_row(connection, *new, text(name)) if source else source
            if target != source:
                jobs = connection.execute(
                    "UPDATE job SET project_id = ?, project_name = ?, writing = 0 "
                    "WHERE project_id = ?",
                    (target, text(name), source),
                ).rowcount
                # Their old troubles may not apply to the new owner.
                batches = connection.execute(
                    "UPDATE batch SET project_id = ?, trouble = NULL, trouble_since = NULL "
                    "WHERE project_id = ?",
                    (target, source),
                ).rowcount
                connection.execute("DELETE FROM project WHERE id = ?", (source,))
            submit_aborts = connection.execute(
                "UPDATE OR REPLACE batch SET project_url = ?, project_account = ? "  # noqa: S608
                f"WHERE {OF_SUBMIT}",
                (*new, *was),
            ).rowcount
            connection.execute(
                "UPDATE OR REPLACE aborted_job SET project_url = ?, account = ? "
                "WHERE identity = ? AND account = ?",
                (*new, *was),
            )
            return Moved(jobs, batches, submit_aborts)

        return self._store.write(change)
