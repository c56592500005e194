"""The staged files, when they may be deleted, and which batches use them (``job_file``).

``delete_time`` is in seconds since the epoch; a later one replaces an earlier one.
"""

from __future__ import annotations

import sqlite3
import time

from boinc_gahp.localproject.names import MAX_NAME
from boinc_gahp.localproject.server.replies import PhpFatal


def note_use(
    connection: sqlite3.Connection,
    name: str,
    batch_id: int,
    delete_time: float,
    *,
    uploaded: bool = False,
) -> bool:
    """Record that a batch uses a file, or that it was uploaded, for a batch if there is one.

    Returns:
        Whether its delete_time was put off.

    Raises:
        PhpFatal: its name is too long for the column, or this was recorded before.
    """
    postponed = False
    row = connection.execute("SELECT * FROM job_file WHERE name = ?", (name,)).fetchone()
    if row is None:
        # Also for a file that did not come through upload_files; the real server adopts it too.
        file_id = _insert(connection, name, delete_time)
    elif uploaded:
        raise PhpFatal(f"Uncaught mysqli_sql_exception: Duplicate entry '{name}' for key 'jf_name'")
    else:
        file_id = row["id"]
        if row["delete_time"] < delete_time:
            connection.execute(
                "UPDATE job_file SET delete_time = ? WHERE id = ?", (delete_time, file_id)
            )
            postponed = True
    if batch_id:
        _associate(connection, batch_id, file_id)
    return postponed


def _associate(connection: sqlite3.Connection, batch_id: int, file_id: int) -> None:
    try:
        connection.execute(
            "INSERT INTO batch_file_assoc (batch_id, job_file_id) VALUES (?, ?)",
            (batch_id, file_id),
        )
    except sqlite3.IntegrityError as error:
        raise PhpFatal(
            f"Uncaught mysqli_sql_exception: Duplicate entry '{file_id}-{batch_id}' "
            "for key 'job_file_id'"
        ) from error


def _insert(connection: sqlite3.Connection, name: str, delete_time: float) -> int:
    if len(name) > MAX_NAME:
        raise PhpFatal("Uncaught mysqli_sql_exception: Data too long for column 'name' at row 1")
    cursor = connection.execute(
        "INSERT INTO job_file (name, create_time, delete_time) VALUES (?, ?, ?)",
        (name, time.time(), delete_time),
    )
    return int(cursor.lastrowid or 0)
