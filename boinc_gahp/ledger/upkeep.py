"""Keeps the ledger small over months: drops what is not needed any more, and shrinks the file.

Free pages are released in steps, each a short transaction between the others (``auto_vacuum =
INCREMENTAL``).
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger.opening import BUSY_TIMEOUT, explain
from boinc_gahp.ledger.rows import ENDED_SQL
from boinc_gahp.ledger.store import CHUNK

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
    dropped = drop_old(
        jobs.store, now, now - htcondor.history, now - htcondor.forget_after, untold=untold
    )
    if dropped:
        log.info("%d entries that are no longer needed were removed from the ledger", dropped)
    shrink(jobs.store, stopping)


def drop_old(store: Store, now: float, over: float, unclear: float, *, untold: bool) -> int:
    """Drop what ended long ago, a part at a time; return how many rows. Nothing alive is dropped.

    Args:
        store: the ledger.
        now: seconds since the epoch.
        over: what ended before then goes if it is known to be over: jobs that were cancelled, or
            whose end HTCondor was told, if no abort is pending for them and their batch is retired;
            and batches without jobs.
        unclear: of what ended before then, also jobs and batches with a pending retirement or
            abort go, when the batch's lease is over: the project has then ended it itself.
        untold: whether to drop then also jobs whose end HTCondor was not told.
    """
    values = {"now": now, "over": over, "unclear": unclear, "untold": untold, "some": CHUNK}
    dropped = 0
    for statement in (_OLD_JOBS, _OLD_BATCHES, *_OLD_REQUESTS):
        while some := store.execute(statement, values):
            dropped += some
    return dropped


_OLD_JOBS: Final = (
    "DELETE FROM job WHERE id IN (SELECT id FROM job "  # noqa: S608
    f"WHERE state IN {ENDED_SQL} AND changed < max(:over, :unclear) AND ("
    "changed < :over AND (end_reported = 1 OR state = 'cancelled') AND abort_pending = 0 "
    "AND NOT EXISTS (SELECT * FROM batch WHERE batch.id = job.batch_id AND state != 'retired') "
    "OR changed < :unclear AND last_polled < :unclear "
    "AND (:untold OR end_reported = 1 OR state = 'cancelled') "
    "AND NOT EXISTS (SELECT * FROM batch WHERE batch.id = job.batch_id "
    "AND state != 'retired' AND lease_until >= :now)) LIMIT :some)"
)
_OLD_BATCHES: Final = (
    "DELETE FROM batch WHERE project_id IN (SELECT id FROM project) "
    "AND (state = 'retired' AND changed < :over "
    "OR state IN ('giving_up', 'ended') AND lease_until < :unclear) "
    "AND NOT EXISTS (SELECT * FROM job WHERE job.batch_id = batch.id)"
)
_OLD_REQUESTS: Final = (
    "DELETE FROM aborted_job WHERE recorded < :unclear",
    "DELETE FROM owed_request WHERE recorded < :unclear",
    "DELETE FROM batch WHERE project_id IS NULL AND max(not_before, sent) < :unclear",
)


def shrink(store: Store, stopping: threading.Event) -> None:
    """Release free pages, if there are many.

    Raises:
        LedgerError: the ledger cannot be read or written.
    """
    try:
        # It makes its own transactions.
        connection = sqlite3.connect(store.path, timeout=BUSY_TIMEOUT, isolation_level=None)
        with closing(connection):
            while not stopping.is_set() and _has_many_free(connection):
                # execute() would end it after the first page.
                connection.executescript(f"PRAGMA incremental_vacuum({STEP:d})")
                stopping.wait(_PAUSE)
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(explain(store.path, "made smaller", error)) from error


def _has_many_free(connection: sqlite3.Connection) -> bool:
    (pages,), (free,) = (
        connection.execute(f"PRAGMA {each}").fetchone() for each in ("page_count", "freelist_count")
    )
    return bool(free > max(_FREE_PAGES, pages // _FREE_PART))
