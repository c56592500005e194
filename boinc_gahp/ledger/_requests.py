"""HTCondor's side of the ledger: jobs are accepted, queried, reported and cancelled."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.rows import (
    ALIVE_SQL,
    ENDED,
    JobRow,
    NewJob,
    fits,
    job_rows,
    project_id,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from boinc_gahp.ledger.store import Store

T = TypeVar("T")

#: How many rows are changed at a time, so that other changes can come in between.
CHUNK = 1000


class Requests:
    """The operations for HTCondor's requests; see :class:`boinc_gahp.ledger.jobs.JobLedger`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        with store.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'token'").fetchone()
        self._token = str(row[0])

    @property
    def store(self) -> Store:
        """The ledger's file."""
        return self._store

    @property
    def token(self) -> str:
        """8 hex digits that distinguish this ledger's job ids from others; made with it."""
        return self._token

    def accept(self, job: NewJob) -> JobRow:
        """Record a job, or find the one that ``job`` repeats; return it when it is on the disk.

        A submit is repeated if its answer was lost (``gridmanager-batch.rst``, "Crashes"). The
        latest attempt with this ``job_directory`` is the same job as long as it is alive, or has
        ended without HTCondor being told. Otherwise this is a new attempt.
        """
        directory = text(job.job_directory)

        def change(connection: sqlite3.Connection) -> JobRow:
            now = time.time()
            latest = _latest(connection, directory)
            if latest is not None and is_repeat_of(latest[2], bool(latest[3])):
                connection.execute("UPDATE job SET last_polled = ? WHERE id = ?", (now, latest[0]))
                return _job(connection, latest[0])
            attempt = 1 if latest is None else latest[1] + 1
            return _job(connection, _insert(connection, job, directory, attempt, now))

        return self._store.write(change)

    def accepted(self, job_directory: str) -> JobRow | None:
        """Return the job that a submit with this ``job_directory`` repeats; None for a new one."""
        with self._store.read() as connection:
            latest = _latest(connection, text(job_directory))
            if latest is None or not is_repeat_of(latest[2], bool(latest[3])):
                return None
            return _job(connection, latest[0])

    def job(self, job_id: int, *, described: bool = True) -> JobRow | None:
        """Return a job, or None if the ledger does not have it (any more).

        ``described``: with its description, which is long.
        """
        if not fits(job_id):
            return None
        with self._store.read(once=True) as connection:
            rows = job_rows(connection, "WHERE job.id = ?", (job_id,), described=described)
        return rows[0] if rows else None

    def htcondor_polled(self, job_ids: Iterable[int], at: float) -> None:
        """Note that HTCondor asked about these jobs; only the latest time is kept."""
        self._in_chunks(
            "UPDATE job SET last_polled = ? WHERE id = ? AND last_polled < ?",
            [(at, job_id, at) for job_id in job_ids if fits(job_id)],
        )

    def end_reported(self, job_ids: Iterable[int]) -> None:
        """Note that HTCondor was told that these jobs ended; skips those that are not over."""
        self._in_chunks(
            "UPDATE job SET end_reported = 1 WHERE id = ? AND state IN ('done', 'failed')",
            [(job_id,) for job_id in job_ids if fits(job_id)],
        )

    def cancel(self, job_id: int) -> JobRow | None:
        """Note that HTCondor does not want the job any more.

        An abort is then pending for it, if the project has the job or may get it. If it was the
        last live job of its batch, the batch ends; one that may be on its way to the project
        (``sent``) must be aborted.

        Returns:
            The job as it was before; None if the ledger does not have it.
        """
        if not fits(job_id):
            return None

        def change(connection: sqlite3.Connection) -> JobRow | None:
            rows = job_rows(connection, "WHERE job.id = ?", (job_id,))
            if not rows:
                return None
            job = rows[0]
            if job.state == "cancelled":
                return job
            connection.execute(
                "UPDATE job SET state = 'cancelled', changed = ?, "
                "abort_pending = abort_pending OR (? AND EXISTS ("
                "SELECT * FROM batch WHERE batch.id = job.batch_id "
                "AND batch.state IN ('planned', 'sent', 'submitted'))) WHERE id = ?",
                (time.time(), job.is_alive, job_id),
            )
            if job.batch_id is not None and job.is_alive:
                end_if_last(connection, job.batch_id)
            return job

        return self._store.write(change)

    def _in_chunks(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        for some in chunks(rows):
            self._store.write(partial(_execute, statement=statement, rows=some))

    def _execute(self, statement: str, values: tuple[object, ...]) -> int:
        """Make a change that is one statement; return how many rows it changed."""
        return self._store.write(lambda connection: connection.execute(statement, values).rowcount)

    def _owner(self, url: str, account: str) -> int:
        """Return the row id of a project and account; 0 if there is none."""
        with self._store.read(once=True) as connection:
            return project_id(connection, url, account)


def is_repeat_of(state: str, end_reported: bool) -> bool:
    """Tell whether a submit with the same JobDirectory means a job in this state."""
    return state not in ENDED or (state != "cancelled" and not end_reported)


def chunks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield ``rows`` in order, :data:`CHUNK` at a time."""
    for start in range(0, len(rows), CHUNK):
        yield rows[start : start + CHUNK]


def end_if_last(connection: sqlite3.Connection, batch_id: int) -> None:
    """End a batch if its last live job has just ended, inside the change that ended the job.

    A batch that was never sent (``planned``) needs no aborts then. One that may be on its way
    (``sent``) cannot be retired, because its jobs may still appear; it must be aborted.
    """
    alive = connection.execute(
        f"SELECT 1 FROM job WHERE batch_id = ? AND state IN {ALIVE_SQL} LIMIT 1",  # noqa: S608
        (batch_id,),
    ).fetchone()
    if alive is not None:
        return
    now = time.time()
    connection.execute(
        "UPDATE job SET abort_pending = 0 WHERE batch_id = ? AND abort_pending = 1 "
        "AND EXISTS (SELECT * FROM batch WHERE id = ? AND state = 'planned')",
        (batch_id, batch_id),
    )
    connection.execute(
        "UPDATE batch SET changed = ?, not_before = 0, "
        "state = CASE state WHEN 'sent' THEN 'giving_up' ELSE 'ended' END "
        "WHERE id = ? AND state IN ('planned', 'sent', 'submitted')",
        (now, batch_id),
    )


def drop_jobs(store: Store, job_ids: Sequence[int]) -> None:
    """Delete jobs, and their data in other tables."""
    for some in chunks([(job_id,) for job_id in job_ids]):
        store.write(partial(_execute, statement="DELETE FROM job WHERE id = ?", rows=some))


def _execute(
    connection: sqlite3.Connection, *, statement: str, rows: Sequence[tuple[object, ...]]
) -> None:
    connection.executemany(statement, rows)


def _latest(connection: sqlite3.Connection, directory: str) -> tuple[int, int, str, int] | None:
    """Return id, attempt, state and ``end_reported`` of the latest attempt of a job."""
    found: tuple[int, int, str, int] | None = connection.execute(
        "SELECT id, attempt, state, end_reported FROM job WHERE job_directory = ? "
        "ORDER BY attempt DESC LIMIT 1",
        (directory,),
    ).fetchone()
    return found


def _job(connection: sqlite3.Connection, job_id: int) -> JobRow:
    (row,) = job_rows(connection, "WHERE job.id = ?", (job_id,))
    return row


def owner_row(connection: sqlite3.Connection, url: str, account: str, name: str) -> int:
    """Return the row id of a project and account, created if needed, and updated to this name."""
    owner = project_id(connection, url, account)
    if owner:
        # URL and name as the settings have them now.
        connection.execute(
            "UPDATE project SET name = ?, url = ? WHERE id = ? AND (name, url) != (?, ?)",
            (name, url, owner, name, url),
        )
        return owner
    inserted = connection.execute(
        "INSERT INTO project (url, account, name) VALUES (?, ?, ?)", (url, account, name)
    )
    return int(inserted.lastrowid or 0)


def _insert(
    connection: sqlite3.Connection, job: NewJob, directory: str, attempt: int, now: float
) -> int:
    name = text(job.project_name)
    owner = owner_row(connection, job.project_url, job.account, name)
    job_id = int(
        connection.execute(
            "INSERT INTO job (job_directory, attempt, project_id, project_name, app_name, "
            "group_key, size, state, accepted, changed, last_polled) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?, ?, ?)",
            (
                directory,
                attempt,
                owner,
                name,
                text(job.app_name),
                text(job.group_key),
                job.size,
                now,
                now,
                now,
            ),
        ).lastrowid
        or 0
    )
    connection.execute(
        "INSERT INTO description (job_id, json) VALUES (?, ?)", (job_id, text(job.description))
    )
    return job_id
