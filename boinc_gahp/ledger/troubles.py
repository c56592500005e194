"""What has been wrong for so long that somebody should be told; owners that nobody can work for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.ledger.progress import fail_job
from boinc_gahp.ledger.requests import Requests
from boinc_gahp.ledger.rows import ALIVE_SQL, HAS_BUSINESS, Hold, project_id

if TYPE_CHECKING:
    import sqlite3

#: Seconds that a trouble lasts before people are told of it: what passes by itself is over by then.
LASTING = 3600.0
_DAY = 86400.0


class Lasting(NamedTuple):
    """What has been wrong for an hour, or an owner that the settings do not have.

    Attributes:
        url: the project's.
        account: on it.
        project_name: in the settings; "" for the section ``[project]``.
        batch_id: in the ledger, of a batch that it is about; None if it is about all.
        since: when it began, in seconds since the epoch.
        text: for people; one line.
        stops: whether jobs wait for it, and not only what is owed.
    """

    url: str
    account: str
    project_name: str
    batch_id: int | None
    since: float
    text: str
    stops: bool


class Troubles(Requests):
    """What lasts, and what is done about it."""

    def lasting(self, now: float, after: float = LASTING) -> list[Lasting]:
        """Return what has been wrong for ``after`` seconds, the oldest first."""
        before = now - after
        with self._store.read() as connection:
            found = [Lasting(*row) for row in connection.execute(_OF_PROJECTS, (before,))]
            found += [Lasting(*row) for row in connection.execute(_OF_BATCHES, (before, before))]
            found += [Lasting(*row) for row in connection.execute(_OF_ABORTS, (before,))]
            found += [Lasting(*row) for row in connection.execute(_OF_DEBTS, (before,))]
        return sorted(found, key=lambda each: each.since)

    def unknown(self, url: str, account: str, yes: bool) -> float | None:
        """Note whether the settings lack an owner.

        Returns:
            Since when they have, in seconds since the epoch; None if they do not.
        """
        with self._store.read() as connection:
            # Asked every minute: write only what is new.
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

    def strand(self, url: str, account: str, hold: Hold) -> int:
        """Let all of an owner's jobs alive fail, since nobody can work for it; return how many.

        The project goes on with those that it has: aborts are owed for them, should the owner come
        back.
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
                "UPDATE job SET abort_owed = 1 WHERE project_id = ? "
                "AND state IN ('sending', 'queued', 'running')",
                (owner,),
            )
            for job_id in ids:
                fail_job(connection, job_id, hold)
            return len(ids)

        return self._store.write(change)

    def take_turn(self, what: str, now: float, every: float = _DAY) -> bool:
        """Tell whether ``what`` is to be done now, by this process: once in so many seconds."""

        def is_due(connection: sqlite3.Connection) -> bool:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (what,)).fetchone()
            # A time that is to come was written before the clock was set back.
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

        # Asked every few seconds: write only if it may be due.
        with self._store.read() as connection:
            if not is_due(connection):
                return False
        return self._store.write(change)


_OF_PROJECTS = (
    "SELECT url, account, name, NULL, trouble_since, trouble, 1 FROM project "  # noqa: S608
    f"WHERE trouble_since <= ? AND {HAS_BUSINESS}"
)
_OF_BATCHES = (
    "SELECT url, account, project.name, batch.id, batch.trouble_since, "
    "'batch ' || batch.name || CASE batch.state WHEN 'ended' THEN ' is still to be retired: ' "
    "WHEN 'giving_up' THEN ' is still to be given up: ' ELSE ': ' END || batch.trouble, "
    "batch.state != 'ended' "
    "FROM project CROSS JOIN batch ON batch.project_id = project.id AND batch.state IN "
    "('planned', 'sent', 'submitted', 'giving_up', 'ended') "
    "WHERE batch.trouble IS NOT NULL AND batch.trouble_since <= ? "
    # Where all of a project is in trouble, that says it.
    "AND coalesce(project.trouble_since > ?, 1)"
)
# A cancelled job's state changes no more. Those of a batch that is being given up end with it.
_OF_ABORTS = (
    "SELECT url, account, project.name, NULL, min(job.changed), "
    "count(*) || iif(count(*) = 1, ' job is', ' jobs are') || ' still to be aborted', 0 "
    "FROM project CROSS JOIN job ON job.project_id = project.id AND job.abort_owed = 1 "
    "CROSS JOIN batch ON batch.id = job.batch_id "
    "WHERE batch.state IN ('submitted', 'ended', 'retired') "
    "AND job.changed <= ? GROUP BY project.id"
)
_OF_DEBTS = (
    "SELECT project_url, project_account, '', NULL, max(not_before, sent), "
    "'batch ' || name || ' is still to be aborted', 0 FROM batch "
    "WHERE project_id IS NULL AND state = 'giving_up' AND max(not_before, sent) <= ?"
)
