"""HTCondor's side of the ledger: jobs are accepted, queried, reported and cancelled."""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.rows import (
    ALIVE_SQL,
    BatchRow,
    JobRow,
    NewJob,
    batch_rows,
    job_rows,
    project_id,
    sql_set,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from boinc_gahp.ledger.store import Store

_JOB_ID = re.compile(r"(?:boinc/)?([0-9a-f]{8})\.([0-9]{1,18})")


class Postponing:
    """What HTCondor's batches and those of BOINC_SUBMIT have in common."""

    store: Store

    def postpone(
        self, batch_id: int, until: float, trouble: str | None, *, listed: int | None = None
    ) -> None:
        """Note why a batch has to wait, and until when (seconds since the epoch).

        The time when the trouble began is kept. ``batch_id``: the ledger's id. ``listed``: how many
        jobs the project had for it when it was aborted just now.
        """
        words = None if trouble is None else text(trouble)
        now = time.time()
        self.store.execute(
            "UPDATE batch SET not_before = ?, listed = ?, trouble = ?, trouble_since = "
            "CASE WHEN ? IS NULL THEN NULL ELSE coalesce(trouble_since, ?) END, changed = ? "
            "WHERE id = ? AND state != 'retired'",
            (until, listed, words, words, now, now, batch_id),
        )

    def _batch_rows(self, rest: str, *values: object) -> list[BatchRow]:
        """Return the batches selected by ``rest`` (WHERE, ORDER BY, LIMIT)."""
        with self.store.read(once=True) as connection:
            return batch_rows(connection, rest, values)


class Requests(Postponing):
    """The operations for HTCondor's requests; see :class:`boinc_gahp.ledger.jobs.JobLedger`."""

    def __init__(self, store: Store) -> None:
        #: The ledger's file.
        self.store = store
        ((token,),) = store.rows("SELECT value FROM meta WHERE key = 'token'")
        #: 8 hex digits that distinguish this ledger's job ids from others; made with it.
        self.token = str(token)
        self._has_accepted = False

    def htcondor_id(self, job: JobRow) -> str:
        """Return a job's id for HTCondor."""
        return f"boinc/{self.token}.{job.id}"

    def number_of(self, htcondor_id: str) -> int | None:
        """Return the id of the job with this id for HTCondor; None: it is not of this ledger."""
        found = _JOB_ID.fullmatch(htcondor_id)
        return int(found[2]) if found and found[1] == self.token else None

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
            if latest is not None and _is_meant_again(latest):
                connection.execute("UPDATE job SET last_polled = ? WHERE id = ?", (now, latest.id))
                return latest._replace(last_polled=now)
            attempt = 1 if latest is None else latest.attempt + 1
            if not self._has_accepted:
                # This file may be yesterday's, and HTCondor know ids of today: they are not given
                # again. No ledger accepts a thousand jobs a second for long.
                connection.execute(
                    "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'job'",
                    (int(now * 1000),),
                )
            job_id = _insert(connection, job, attempt, now)
            return job_rows(connection, "WHERE job.id = ?", (job_id,))[0]

        row = self.store.write(change)
        self._has_accepted = True
        return row

    def accepted(self, job_directory: str) -> JobRow | None:
        """Return the job that a submit with this ``job_directory`` repeats; None for a new one."""
        with self.store.read() as connection:
            latest = _latest(connection, text(job_directory))
        return latest if latest is not None and _is_meant_again(latest) else None

    def job(self, job_id: int, *, described: bool = True) -> JobRow | None:
        """Return a job, or None if the ledger does not have it (any more).

        ``described``: with its description, which is long.
        """
        rows = self._job_rows("WHERE job.id = ?", job_id, described=described)
        return rows[0] if rows else None

    def htcondor_polled(self, times: Mapping[int, float]) -> None:
        """Note when HTCondor asked about jobs, by their ids; only the latest time is kept."""
        self.store.execute(
            "UPDATE job SET last_polled = ? WHERE id = ? AND last_polled < ?",
            *((at, job_id, at) for job_id, at in times.items()),
        )

    def end_reported(self, job_ids: Iterable[int]) -> None:
        """Note that HTCondor was told that these jobs ended; skips those that are not over."""
        self.store.execute(
            "UPDATE job SET end_reported = 1 WHERE id = ? AND state IN ('done', 'failed')",
            *((job_id,) for job_id in job_ids),
        )

    def cancel(self, job_id: int) -> JobRow | None:
        """Note that HTCondor does not want the job any more.

        An abort is then pending for it, if the project has the job or may get it. If it was the
        last live job of its batch, the batch ends; one that may be on its way to the project
        (``sent``) must be aborted.

        Returns:
            The job as it was before; None if the ledger does not have it.
        """

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

        return self.store.write(change)

    def _job_rows(self, rest: str, *values: object, described: bool = True) -> list[JobRow]:
        """Return the jobs selected by ``rest`` (WHERE, ORDER BY, LIMIT)."""
        with self.store.read(once=True) as connection:
            return job_rows(connection, rest, values, described=described)

    def _owner(self, url: str, account: str) -> int:
        """Return the row id of a project and account; 0 if there is none."""
        with self.store.read(once=True) as connection:
            return project_id(connection, url, account)


def _is_meant_again(job: JobRow) -> bool:
    """Tell whether a submit with the same JobDirectory means this job."""
    return job.is_alive or (job.state != "cancelled" and not job.end_reported)


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
    connection.execute(
        "UPDATE job SET abort_pending = 0 WHERE batch_id = ? AND abort_pending = 1 "
        "AND EXISTS (SELECT * FROM batch WHERE id = ? AND state = 'planned')",
        (batch_id, batch_id),
    )
    change_batch(
        connection,
        batch_id,
        ("planned", "sent", "submitted"),
        "state = CASE state WHEN 'sent' THEN 'giving_up' ELSE 'ended' END, not_before = 0",
    )


def change_batch(
    connection: sqlite3.Connection,
    batch_id: int,
    states: Iterable[str],
    what: str,
    *values: object,
) -> bool:
    """Change a batch if it is in one of ``states``, inside a change; return whether it was.

    ``what``: the SET clause, with its ``values``.
    """
    statement = f"UPDATE batch SET changed = ?, {what} WHERE id = ? AND state IN {sql_set(states)}"  # noqa: S608
    return connection.execute(statement, (time.time(), *values, batch_id)).rowcount == 1


def _latest(connection: sqlite3.Connection, directory: str) -> JobRow | None:
    """Return the latest attempt of a job."""
    rest = "WHERE job.job_directory = ? ORDER BY job.attempt DESC LIMIT 1"
    rows = job_rows(connection, rest, (directory,))
    return rows[0] if rows else None


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


def _insert(connection: sqlite3.Connection, job: NewJob, attempt: int, now: float) -> int | None:
    values: dict[str, Any] = {
        name: text(value) if isinstance(value, str) else value
        for name, value in asdict(job).items()
    }
    owner = owner_row(connection, job.project_url, job.account, values["project_name"])
    job_id = connection.execute(
        "INSERT INTO job (job_directory, attempt, project_id, project_name, app_name, "
        "group_key, size, state, accepted, changed, last_polled) "
        "VALUES (:job_directory, :attempt, :owner, :project_name, :app_name, "
        ":group_key, :size, 'waiting', :now, :now, :now)",
        {**values, "attempt": attempt, "owner": owner, "now": now},
    ).lastrowid
    connection.execute(
        "INSERT INTO description (job_id, json) VALUES (?, ?)", (job_id, values["description"])
    )
    return job_id
