"""What the back-end programs share: errors that cost only one workunit, and the table ``program``.

If a program fails with a workunit, that workunit is put off (``workunit.failures`` and
``retry_time``; for the transitioner, ``transition_time``): it is tried again after 1 s, 2 s, 4 s
and so on, while the program goes on with the others.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import TYPE_CHECKING

from boinc_gahp.backoff import Backoff
from boinc_gahp.localproject.backend.plugins import PluginError
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp.localproject.core import Core

log = logging.getLogger("boinc_gahp.localproject")

TRANSITIONER = "transitioner"
VALIDATOR = "validator"
ASSIMILATOR = "assimilator"
FILE_DELETER = "file_deleter"
SIZE_REGULATOR = "size_regulator"
WORK_GENERATOR = "work_generator"
BATCH_EXPIRY = "batch_expiry"
JOB_FILE_CLEANER = "job_file_cleaner"

#: Time between attempts at a workunit.
_BACKOFF = {
    TRANSITIONER: Backoff(1.0, 60.0),
    VALIDATOR: Backoff(1.0, 3600.0),
    ASSIMILATOR: Backoff(1.0, 3600.0),
}
#: The condition for deferred workunits that each program will try again.
_MINE = {
    TRANSITIONER: "need_validate = 0 AND assimilate_state != 1",
    VALIDATOR: "need_validate = 1",
    ASSIMILATOR: "assimilate_state = 1",
}


def handle_each(
    core: Core,
    program: str,
    workunits: Sequence[sqlite3.Row],
    handle: Callable[[sqlite3.Row], object],
    *,
    now: float,
    seconds: float | None = None,
) -> int:
    """Call ``handle`` for rows of workunits with id, name and failures; return their number.

    If it raises for one, that is put off. After ``seconds`` the rest is left to the next pass.

    Raises:
        sqlite3.OperationalError: the database cannot be read or written, whatever the workunit.
    """
    begin = time.monotonic()
    for count, workunit in enumerate(workunits, 1):
        try:
            handle(workunit)
        except sqlite3.OperationalError:
            raise
        except Exception as error:  # noqa: BLE001 - put_off logs it
            with core.db.write() as connection:
                put_off(connection, program, workunit, error, now)
        if seconds is not None and time.monotonic() - begin > seconds:
            return count
    return len(workunits)


def put_off(
    connection: sqlite3.Connection,
    program: str,
    workunit: sqlite3.Row,
    error: Exception,
    now: float,
) -> None:
    """Record that a program failed with a workunit, in the open transaction.

    An error that many workunits share is logged once, as long as the program shows it.
    """
    kind = "" if isinstance(error, PluginError) else f"{type(error).__name__}: "
    cause = shorten(f"{kind}{error}")
    pause = _BACKOFF[program].seconds(workunit["failures"])
    shown = connection.execute("SELECT error FROM program WHERE name = ?", (program,)).fetchone()
    text = f"{cause} (workunit {workunit['name']}, tried again after {pause:g} s)"
    if shown is not None and shown["error"].startswith(cause):
        log.debug("%s: %s", program, text)
    else:
        log.error("%s: %s", program, text, exc_info=error.__cause__ or error)
    column = "transition_time" if program == TRANSITIONER else "retry_time"
    connection.execute(
        f"UPDATE workunit SET failures = failures + 1, {column} = ? WHERE id = ?",  # noqa: S608
        (now + pause, workunit["id"]),
    )
    connection.execute(
        "INSERT INTO program (name, error) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET error = excluded.error",
        (program, text),
    )


def note_passes(
    connection: sqlite3.Connection, program: str, *, handled: int, last_time: float, error: str
) -> None:
    """Add to a program's row what it has handled since the row was last updated.

    ``last_time`` is that of its last pass, ``error`` the error of that pass as a whole; if it is
    empty, an error of a workunit stays until that one has been handled.
    """
    keep = False
    if not error and program in _MINE:
        waiting = connection.execute(
            f"SELECT 1 FROM workunit WHERE failures > 0 AND {_MINE[program]} LIMIT 1"  # noqa: S608
        ).fetchone()
        keep = waiting is not None
    elif not error and program == WORK_GENERATOR:
        # It records the errors of each app's generator with the app.
        failing = connection.execute(
            "SELECT name, work_error FROM app WHERE work_error != '' ORDER BY id LIMIT 1"
        ).fetchone()
        error = f"{failing['name']}: {failing['work_error']}" if failing is not None else ""
    connection.execute(
        "INSERT INTO program (name, handled, last_time, error) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET handled = handled + excluded.handled, "
        "last_time = excluded.last_time, "
        "error = CASE WHEN ? THEN error ELSE excluded.error END",
        (program, handled, last_time, error, keep),
    )
