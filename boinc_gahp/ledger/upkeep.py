"""Keeps the ledger small over months: drops what is not needed any more, and shrinks the file.

Free pages are released in steps, each a short transaction between the others (``auto_vacuum =
INCREMENTAL``).
"""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger._requests import drop_jobs
from boinc_gahp.ledger.opening import BUSY_TIMEOUT, explain
from boinc_gahp.ledger.rows import ENDED_SQL, column

if TYPE_CHECKING:
    import threading

    from boinc_gahp.config.settings import HTCondor
    from boinc_gahp.ledger.jobs import JobLedger
    from boinc_gahp.ledger.store import Store

log = logging.getLogger("boinc_gahp.ledger")

#: Seconds between two rounds of upkeep, by any process.
TENDED_EVERY = 3600.0

#: Pages (4 kB) released in one transaction.
STEP = 256
#: With fewer free pages than this, or than this part of all, none are released: they will be used
#: again.
_FREE_PAGES, _FREE_PART = 256, 8
#: Seconds between two steps, in which others can write.
_PAUSE = 0.05


def drop_unneeded(
    jobs: JobLedger, now: float, htcondor: HTCondor, stopping: threading.Event, *, untold: bool
) -> None:
    """Do the upkeep, unless any process did it within :data:`TENDED_EVERY`.

    Args:
        jobs: the ledger of jobs.
        now: seconds since the epoch.
        htcondor: the settings ``history``, for jobs that are over on both sides, and
            ``forget_after``, for other ended jobs and for old pending aborts.
        stopping: ends the upkeep early.
        untold: whether to drop also jobs whose end HTCondor was not told. It may have been shut
            down for long, and needs time to ask about them.

    Raises:
        LedgerError: the ledger cannot be read or written.
    """
    if not jobs.take_turn("tended", now, TENDED_EVERY):
        return
    dropped = jobs.prune(now - htcondor.history)
    dropped += forget(jobs.store, now, now - htcondor.forget_after, untold=untold)
    if dropped:
        log.info("%d entries that are no longer needed were removed from the ledger", dropped)
    shrink(jobs.store, stopping)


def forget(store: Store, now: float, before: float, *, untold: bool) -> int:
    """Drop what ended before ``before`` (seconds since the epoch); return how many rows.

    Jobs and batches with a pending retirement or abort are dropped when the batch's lease is over,
    because the project has then ended it itself. Nothing alive is dropped.
    """
    with store.read() as connection:
        ids = column(
            connection,
            f"SELECT id FROM job WHERE state IN {ENDED_SQL} AND changed < ? "  # noqa: S608
            "AND last_polled < ? AND (? OR end_reported = 1 OR state = 'cancelled') "
            "AND NOT EXISTS (SELECT * FROM batch WHERE batch.id = job.batch_id "
            "AND state != 'retired' AND lease_until >= ?)",
            (before, before, untold, now),
        )
    drop_jobs(store, ids)
    statements = (
        "DELETE FROM batch WHERE project_id IN (SELECT id FROM project) "
        "AND state IN ('giving_up', 'ended') AND lease_until < ? "
        "AND NOT EXISTS (SELECT * FROM job WHERE job.batch_id = batch.id)",
        "DELETE FROM aborted_job WHERE recorded < ?",
        "DELETE FROM owed_request WHERE recorded < ?",
        "DELETE FROM batch WHERE project_id IS NULL AND max(not_before, sent) < ?",
    )
    return len(ids) + sum(store.execute(statement, (before,)) for statement in statements)


def shrink(store: Store, stopping: threading.Event) -> None:
    """Release free pages, if there are many.

    Raises:
        LedgerError: the ledger cannot be read or written.
    """
    try:
        # It makes its own transactions.
        connection = sqlite3.connect(store.path, timeout=BUSY_TIMEOUT, isolation_level=None)
        try:
            while not stopping.is_set() and _has_many_free(connection):
                _give_back(connection)
                stopping.wait(_PAUSE)
        finally:
            connection.close()
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(explain(store.path, "made smaller", error)) from error


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _has_many_free(connection: sqlite3.Connection) -> bool:
    pages = _number(connection, "page_count")
    return _number(connection, "freelist_count") > max(_FREE_PAGES, pages // _FREE_PART)


def _give_back(connection: sqlite3.Connection) -> None:
    # execute() would end it after the first page.
    connection.executescript(f"PRAGMA incremental_vacuum({STEP:d})")
