"""Problems that have lasted so long that people are told, and owners that have no settings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.errors import OutputError
from boinc_gahp.ledger._progress import fail_job
from boinc_gahp.ledger._requests import Requests
from boinc_gahp.ledger.rows import ALIVE_SQL, ENDED_SQL, HAS_WORK, Hold, column, project_id

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

#: Seconds until people are told of a problem: by then, passing ones are over.
PERSISTENT_AFTER = 3600.0
_DAY = 86400.0


#: Seconds after which pending requests should have been sent: cron sends them every hour.
OVERDUE = _DAY


class Problem(NamedTuple):
    """A problem that a person should look into.

    Attributes:
        reason: one of those in ``docs/htcondor-admins.rst``, "Monitoring".
        url: the project concerned; empty if all are.
        account: the account concerned, likewise.
        since: when it began, in seconds since the epoch; 0: unknown.
        text: one line for people.
        batch_id: the ledger's id of the batch that has it; None if it concerns all.
    """

    reason: str
    url: str
    account: str
    since: float
    text: str
    batch_id: int | None = None


class Problems(Requests):
    """Problems that persist, and what is done about them."""

    def persistent_problems(self, now: float, after: float = PERSISTENT_AFTER) -> list[Problem]:
        """Return the problems that have lasted for ``after`` seconds, the oldest first.

        Those with the reasons ``project`` and ``batch`` stop jobs, those with the reason ``owed``
        do not.
        """
        statements = (_OF_PROJECTS, _OF_BATCHES, _OF_ABORTS, _OF_REQUESTS, _OF_SUBMITS)
        found = self._problems(statements, {"before": now - after})
        return sorted(found, key=lambda each: each.since)

    def other_problems(
        self, now: float, after: float, orphaned: float, hold_code: int
    ) -> list[Problem]:
        """Return problems that are only told to those who ask.

        Outputs that this submit node cannot store are told at once: only people here can help.

        Args:
            now: seconds since the epoch.
            after: outputs that could not be delivered for so many seconds, and jobs that were held
                within them with ``hold_code``, are problems.
            orphaned: live jobs that HTCondor has not asked about since then are orphans.
            hold_code: of the holds because of the account.
        """
        values = {
            "before": now - after,
            "orphaned": orphaned,
            "overdue": now - OVERDUE,
            "code": hold_code,
        }
        return self._problems((_OUTPUTS, _HELD, _UNSENT, _ORPHANS), values)

    def _problems(self, statements: Iterable[str], values: dict[str, float]) -> list[Problem]:
        with self.store.read() as connection:
            return [
                Problem(*row)
                for statement in statements
                for row in connection.execute(statement, values)
            ]

    def set_unknown(self, url: str, account: str, yes: bool) -> float | None:
        """Note whether the settings lack an owner.

        Returns:
            Since when they have lacked it, in seconds since the epoch; None if they do not.
        """
        with self.store.read() as connection:
            # Called every minute: write only if there is something new.
            row = connection.execute(
                "SELECT id, unknown_since FROM project WHERE id = ?",
                (project_id(connection, url, account),),
            ).fetchone()
        if row is None or (row[1] is not None) == yes:
            return None if row is None else row[1]
        since = time.time() if yes else None
        self.store.execute("UPDATE project SET unknown_since = ? WHERE id = ?", (since, row[0]))
        return since

    def polled(self, url: str, account: str, at: float) -> None:
        """Note when a project last answered a question about jobs, in seconds since the epoch."""
        self.store.execute(
            "UPDATE project SET polled = ? WHERE id = ?", (at, self._owner(url, account))
        )

    def hold_all_jobs(self, url: str, account: str, hold: Hold) -> int:
        """Let all live jobs of an owner without settings fail; return how many.

        The project goes on with the jobs that it has. They are to be aborted, in case the owner's
        settings come back.
        """

        def change(connection: sqlite3.Connection) -> int:
            owner = project_id(connection, url, account)
            ids = column(
                connection,
                f"SELECT id FROM job WHERE project_id = ? AND state IN {ALIVE_SQL}",  # noqa: S608
                (owner,),
            )
            connection.execute(
                "UPDATE job SET abort_pending = 1 WHERE project_id = ? "
                "AND state IN ('sending', 'queued', 'running')",
                (owner,),
            )
            for job_id in ids:
                fail_job(connection, job_id, hold)
            return len(ids)

        return self.store.write(change)

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
        with self.store.read() as connection:
            if not is_due(connection):
                return False
        return self.store.write(change)


_OF_PROJECTS = (
    "SELECT 'project', url, account, trouble_since, trouble FROM project "  # noqa: S608
    f"WHERE trouble_since <= :before AND {HAS_WORK}"
)
_OF_BATCHES = (
    "SELECT iif(batch.state = 'ended', 'owed', 'batch'), url, account, batch.trouble_since, "
    "'batch ' || batch.name || CASE batch.state WHEN 'ended' THEN ' is still to be retired: ' "
    "WHEN 'giving_up' THEN ' is still to be given up: ' ELSE ': ' END || batch.trouble, batch.id "
    "FROM project CROSS JOIN batch ON batch.project_id = project.id AND batch.state IN "
    "('planned', 'sent', 'submitted', 'giving_up', 'ended') "
    "WHERE batch.trouble IS NOT NULL AND batch.trouble_since <= :before "
    # A trouble of the whole project is reported instead.
    "AND coalesce(project.trouble_since > :before, 1)"
)
#: How many jobs or batches a group of rows has, in words.
_JOBS = "count(*) || iif(count(*) = 1, ' job', ' jobs')"
_BATCHES = "count(*) || iif(count(*) = 1, ' batch', ' batches')"
# A cancelled job's state changes no more. The jobs of a batch being aborted end with it.
_OF_ABORTS = (
    "SELECT 'owed', url, account, min(job.changed), "  # noqa: S608
    f"{_JOBS} || iif(count(*) = 1, ' is', ' are') || ' still to be aborted' "
    "FROM project CROSS JOIN job ON job.project_id = project.id AND job.abort_pending = 1 "
    "CROSS JOIN batch ON batch.id = job.batch_id "
    "WHERE batch.state IN ('submitted', 'ended', 'retired') "
    "AND job.changed <= :before GROUP BY project.id"
)
_OF_REQUESTS = (
    "SELECT 'owed', project_url, account, min(recorded), "
    "'HTCondor could not have ' || count(*) || iif(command = 'abort', ' aborted: jobs', "
    "' retired: batches') || ' of which boinc_gahp still tells the project' "
    "FROM owed_request WHERE recorded <= :before GROUP BY project_url, account, command"
)
_OF_SUBMITS = (
    "SELECT 'owed', project_url, project_account, max(not_before, sent), "
    "'batch ' || name || ' is still to be aborted' FROM batch "
    "WHERE project_id IS NULL AND state = 'giving_up' AND max(not_before, sent) <= :before"
)
# The trouble comes from the row with the minimum (SQLite's documentation, "Bare columns in an
# aggregate query").
#: That of a trouble with this submit node's storage (:attr:`.JobRow.storage_trouble`).
_ENDING = f"'%[{OutputError.code}]'"
_OUTPUTS = (
    "SELECT 'outputs', url, account, min(job.changed), "  # noqa: S608
    f"'the outputs of ' || {_JOBS} || ' cannot be fetched: ' || job.trouble "
    "FROM project CROSS JOIN job ON job.project_id = project.id AND job.state = 'finished' "
    f"WHERE job.trouble IS NOT NULL AND (job.changed <= :before OR job.trouble LIKE {_ENDING}) "
    "GROUP BY project.id"
)
_HELD = (
    f"SELECT 'account', url, account, 0, {_JOBS} || ' went on hold lately with code ' || :code "  # noqa: S608
    "|| ': condor_q -hold tells what is wrong with the account' "
    f"FROM job CROSS JOIN project ON project.id = job.project_id WHERE job.state IN {ENDED_SQL} "
    "AND job.changed >= :before AND job.hold_code = :code GROUP BY project.id"
)
_UNSENT = (
    f"SELECT 'owed', url, account, 0, {_BATCHES} || ' of this project should have been retired "  # noqa: S608
    "or aborted by now, and nobody did it: run boinc_gahp ledger reconcile, and have cron run it "
    "(conf/boinc_gahp.cron)' FROM (SELECT url, account FROM project CROSS JOIN batch "
    "ON batch.project_id = project.id AND batch.state IN ('ended', 'giving_up') "
    "WHERE batch.trouble IS NULL AND batch.changed < :overdue "
    "UNION ALL SELECT project_url, project_account FROM batch "
    "WHERE project_id IS NULL AND state = 'sent' AND not_before < :overdue) GROUP BY url, account"
)
_ORPHANS = (
    f"SELECT 'orphans', url, account, 0, 'HTCondor has not asked about ' || {_JOBS} || ' for "  # noqa: S608
    "the length of a lease: boinc_gahp ledger status --jobs names them; drop those that condor_q "
    "does not have with boinc_gahp ledger forget --alive' "
    f"FROM project CROSS JOIN job ON job.project_id = project.id AND job.state IN {ALIVE_SQL} "
    "WHERE job.last_polled < :orphaned GROUP BY project.id"
)
