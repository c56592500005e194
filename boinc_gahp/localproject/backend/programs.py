"""What the back-end programs share: errors that cost only one workunit, and the table ``program``.

If a program fails with a workunit, that workunit is put off (``workunit.retry_time``; for the
transitioner, ``transition_time``): it is tried again after 10 s, while the program goes on with the
others.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from typing import TYPE_CHECKING

from boinc_gahp.localproject.errors import LocalProjectTrouble, WorkError
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp.localproject.core import Core

log = logging.getLogger("boinc_gahp.localproject")

TRANSITIONER = "transitioner"
VALIDATOR = "validator"
ASSIMILATOR = "assimilator"
WORK_GENERATOR = "work_generator"

#: The most that a program handles in one pass.
PASS = 1000
#: With slow plug-ins, the other programs wait for about this many seconds at a time.
_PASS_SECONDS = 1.0
#: Seconds until a program tries again what it could not do.
RETRY = 10.0


def handle_each(
    core: Core,
    program: str,
    workunits: Sequence[sqlite3.Row],
    handle: Callable[[sqlite3.Row], object],
    now: float,
) -> int:
    """Call ``handle`` for rows of workunits with id and name; return their number.

    If it raises for one, that is put off. After a second the rest is left to the next pass.

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
        if time.monotonic() - begin > _PASS_SECONDS:
            return count
    return len(workunits)


def put_off(
    connection: sqlite3.Connection,
    program: str,
    workunit: sqlite3.Row,
    error: Exception,
    now: float,
) -> None:
    """Record that a program failed with a workunit, in the open transaction."""
    note_error(connection, program, f"workunit {workunit['name']}", error, now)
    column = "transition_time" if program == TRANSITIONER else "retry_time"
    connection.execute(
        f"UPDATE workunit SET {column} = ? WHERE id = ?",  # noqa: S608
        (now + RETRY, workunit["id"]),
    )


def note_error(
    connection: sqlite3.Connection, program: str, what: str, error: Exception, now: float
) -> None:
    """Log an error about one thing, and note it as the program's last.

    An error that many things share, or that comes again, is logged once.
    """
    kind = (
        "" if isinstance(error, (LocalProjectTrouble, WorkError)) else f"{type(error).__name__}: "
    )
    cause = shorten(f"{kind}{error}")
    text = f"{cause} ({what}, tried again after {RETRY:g} s)"
    last = connection.execute("SELECT error FROM program WHERE name = ?", (program,)).fetchone()
    if last is not None and last["error"].startswith(cause):
        log.debug("%s: %s", program, text)
    else:
        log.error("%s: %s", program, text, exc_info=error.__cause__ or error)
    note(connection, program, now, error=text)


def note(
    connection: sqlite3.Connection, program: str, now: float, *, handled: int = 0, error: str = ""
) -> None:
    """Add to a program's row what it has handled, and its last error."""
    connection.execute(
        "INSERT INTO program (name, handled, error, error_time) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET handled = handled + excluded.handled, "
        "error = iif(excluded.error = '', error, excluded.error), "
        "error_time = max(error_time, excluded.error_time)",
        (program, handled, error, now if error else 0.0),
    )
