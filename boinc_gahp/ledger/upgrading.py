"""Updates a ledger of an earlier version, in place or in a copy."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.config import ProjectUrl, url_identity
from boinc_gahp.errors import BadRequest, LedgerError
from boinc_gahp.ledger.migrations import MIGRATIONS, VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence


def version(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration made to the ledger."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_version(path: Path, connection: sqlite3.Connection) -> int:
    """Return the ledger's version.

    Raises:
        LedgerError: it is later than this program's.
    """
    found = version(connection)
    if found > VERSION:
        raise LedgerError(
            f"the ledger {path} has version {found}, but this boinc_gahp knows versions up to "
            f"{VERSION}: install a later boinc_gahp, or set another dir in the section [state]"
        )
    return found


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring the ledger up to date; does nothing if it already is."""
    if version(connection) == VERSION and not _split(connection):
        return
    # Migrations drop tables and create them anew. The pragma has no effect inside a transaction.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Checked again, now that no other process can be migrating.
        for number in range(version(connection) + 1, VERSION + 1):
            for statement in MIGRATIONS[number - 1]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number:d}")
        _unite(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


class Copy:
    """An up-to-date copy of a ledger of an earlier version, which itself stays as it is.

    Args:
        connection: to the ledger.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="boinc_gahp-")
        self.path = Path(self._directory.name, "ledger.sqlite")
        #: While it is open, others can open the file only for reading.
        self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.backup(self.connection)
        upgrade(self.connection)

    def close(self) -> None:
        """Remove it."""
        self.connection.close()
        self._directory.cleanup()


def _split(connection: sqlite3.Connection) -> list[Sequence[tuple[int, str]]]:
    """Return row ids and addresses of each project and account that has several rows.

    Also of a single row whose address is not normalized. Earlier versions took each spelling for a
    project of its own; a daemon of such a version may still run.
    """
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for row_id, url, account in connection.execute(
        "SELECT id, url, account FROM project ORDER BY id"
    ):
        groups.setdefault((url_identity(url), account), []).append((row_id, url))
    return [rows for rows in groups.values() if len(rows) > 1 or rows[0][1] != _usual(rows[0][1])]


def _unite(connection: sqlite3.Connection) -> None:
    """Merge the rows of each project and account into the first, with the last one's values."""
    for rows in _split(connection):
        first, last = rows[0][0], rows[-1][0]
        connection.execute(
            "UPDATE project SET (name, trouble, trouble_since) = "
            "(SELECT name, trouble, trouble_since FROM project WHERE id = ?) WHERE id = ?",
            (last, first),
        )
        for row_id, _ in rows[1:]:
            for table in ("job", "batch"):
                connection.execute(
                    f"UPDATE {table} SET project_id = ? WHERE project_id = ?",  # noqa: S608
                    (first, row_id),
                )
            connection.execute("DELETE FROM project WHERE id = ?", (row_id,))
        connection.execute("UPDATE project SET url = ? WHERE id = ?", (_usual(rows[-1][1]), first))


def _usual(url: str) -> str:
    try:
        return ProjectUrl(url)
    except BadRequest:
        return url
