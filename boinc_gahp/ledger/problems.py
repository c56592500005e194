"""Problems that have lasted so long that people are told, and owners that have no settings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.ledger.progress import fail_job
from boinc_gahp.ledger.requests import Requests
from boinc_gahp.ledger.rows import ALIVE_SQL, HAS_WORK, Hold, project_id

if TYPE_CHECKING:
    import sqlite3

#: Seconds until people are told of a problem: by then, passing ones are over.
PERSISTENT_AFTER = 3600.0
_DAY = 86400.0


class PersistentProblem(NamedTuple):
    """A problem that has lasted for an hour, or an owner that the settings lack.

    Attributes:
        url: the project's URL.
        account: the account there.
        project_name: its name in the settings; "" for the section ``[project]``.
        batch_id: the ledger's id of the batch that has it; None if it concerns all.
        since: when it began, in seconds since the epoch.
        text: one line for people.
        stops: whether it stops jobs, and not only aborts and retirements.
    """

    url: str
    account: str
    project_name: str
    batch_id: int | None
    since: float
    text: str
    stops: bool


class Problems(Requests):
    """Problems that persist, and what is done about them."""

    def persistent_problems(
        self, now: float, after: float = PERSISTENT_AFTER
    ) -> list[PersistentProblem]:
        """Return the problems that have lasted for ``after`` seconds, the oldest first."""
        before = now - after
        with self._store.read() as connection:
            found = [PersistentProblem(*row) for row in connection.execute(_OF_PROJECTS, (before,))]
            found += [
                PersistentProblem(*row) for row in connection.execute(_OF_BATCHES, (before, before))
            ]
            found += [PersistentProblem(*row) for row in connection.execute(_OF_ABORTS, (before,))]
            found += [PersistentProblem(*row) for row in connection.execute(_OF_SUBMITS, (before,))]
        return sorted(found, key=lambda each: each.since)

    def set_unknown(self, url: str, account: str, yes: bool) -> float | None:
        """Note whether the settings lack an owner.

        Returns:
            Since when they have lacked it, in seconds since the epoch; None if they do not.
        """
        with self._store.read() as connection:
            # Called every minute: write only if there is something new.
            row = connection.execute(
                "SELECT id, unknown_since FROM project WHERE id = ?",
                (project_id(connection, url, account),),
            ).fetchone()
        if row is None or (row[1] is not None) == yes:
            return None if row is None else row[1]
        since = time.time() if yes else None
        self._store.write(
            lambda connection: (
                connection.execute(
                    "UPDATE project SET unknown_since = ? WHERE id = ?", (since, row[0])
                ).rowcount
            )
        )
        return since

    def polled(self, url: str, account: str, at: float) -> None:
        """Note when a project last answered a question about jobs, in seconds since the epoch."""
        self._store.write(
            lambda connection: (
                connection.execute(
                    "UPDATE project SET polled = ? WHERE id = ?",
                    (at, project_id(connection, url, account)),
                ).rowcount
            )
        )

    def hold_all_jobs(self, url: str, account: str, hold: Hold) -> int:
        """Let all live jobs of an owner without settings fail; return how many.

        The project goes on with the jobs that it has. They are to be aborted, in case the owner's
        settings come back.
        """

        def change(connection: sqlite3.Connection) -> int:
            owner = project_id(connection, url, account)
            ids = [
                job_id
                for (job_id,) in connection.execute(
                    f"SELECT id FROM job WHERE project_id = ? AND state IN {ALIVE_SQL}",  # noqa: S608
                    (owner,),
                )
            ]
            connection.execute(
                "UPDATE job SET abort_pending = 1 WHERE project_id = ? "
                "AND state IN ('sending', 'queued', 'running')",
                (owner,),
            )
            for job_id in ids:
                fail_job(connection, job_id, hold)
            return len(ids)

        return self._store.write(change)

    def take_turn(self, what: str, now: float, every: float = _DAY) -> bool:
        """Return whether this process should do ``what`` now: once in ``every`` seconds."""

        def is_due(connection: sqlite3.Connection) -> bool:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (what,)).fetchone()
            # A time in the future was written before the clock was set back.
            return row is None or not now - every < float(row[0]) <= now

        def change(connection: sqlite3.Connection) -> bool:
            if not is_due(connection):
                return False
            connection.execute(
                "INSERT INTO meta (key, value) VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET value = excluded.value",
                (what, repr(now)),
            )
            return True

        # Called every few seconds: write only if it may be due.
        with self._store.read() as connection:
            if not is_due(connection):
                return False
        return self._store.write(change)


_OF_PROJECTS = (
    "SELECT url, account, name, NULL, trouble_since, trouble, 1 FROM project "  # noqa: S608
    f"WHERE trouble_since <= ? AND {HAS_WORK}"
)
_OF_BATCHES = (
    "SELECT url, account, project.name, batch.id, batch.trouble_since, "
    "'batch ' || batch.name || CASE batch.state WHEN 'ended' THEN ' is still to be retired: ' "
    "WHEN 'giving_up' THEN ' is still to be given up: ' ELSE ': ' END || batch.trouble, "
    "batch.state != 'ended' "
    "FROM project CROSS JOIN batch ON batch.project_id = project.id AND batch.state IN "
    "('planned', 'sent', 'submitted', 'giving_up', 'ended') "
    "WHERE batch.trouble IS NOT NULL AND batch.trouble_since <= ? "
    # A trouble of the whole project is reported instead.
    "AND coalesce(project.trouble_since > ?, 1)"
)
# A cancelled job's state changes no more. The jobs of a batch being aborted end with it.
_OF_ABORTS = (
    "SELECT url, account, project.name, NULL, min(job.changed), "
    "count(*) || iif(count(*) = 1, ' job is', ' jobs are') || ' still to be aborted', 0 "
    "FROM project CROSS JOIN job ON job.project_id = project.id AND job.abort_pending = 1 "
    "CROSS JOIN batch ON batch.id = job.batch_id "
    "WHERE batch.state IN ('submitted', 'ended', 'retired') "
    "AND job.changed <= ? GROUP BY project.id"
)
_OF_SUBMITS = (
    "SELECT project_url, project_account, '', NULL, max(not_before, sent), "
    "'batch ' || name || ' is still to be aborted', 0 FROM batch "
    "WHERE project_id IS NULL AND state = 'giving_up' AND max(not_before, sent) <= ?"
)
