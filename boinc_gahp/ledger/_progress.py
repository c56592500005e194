"""The manager's side of the ledger: jobs on the project, their ends, and troubles."""

from __future__ import annotations

import json
import time
from dataclasses import astuple
from typing import TYPE_CHECKING, Final, Literal

from boinc_gahp.ledger._requests import Requests, end_if_last
from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.rows import (
    ALIVE_SQL,
    HTCONDOR_HAS_ASKED,
    JOB_NAME,
    Hold,
    JobRow,
    ProgramFailure,
    column,
    project_id,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping


DAY: Final = 86400.0


class Progress(Requests):
    """The manager's changes to jobs. A change that the state does not allow changes nothing."""

    def hold(self, job_ids: Iterable[int], hold: Hold) -> None:
        """Let live jobs fail, all for the same reason; a batch ends with its last live job."""
        wanted = list(job_ids)

        def change(connection: sqlite3.Connection) -> None:
            for job_id in wanted:
                fail_job(connection, job_id, hold)

        self.store.write(change)

    def program_failed(self, job_id: int, failure: ProgramFailure) -> None:
        """Note that the program of a job on the project failed, for good.

        The job is then ``finished``, whatever the project says later. It ends with :meth:`fetched`,
        when the report of the failure is in place.
        """

        def change(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                "UPDATE job SET state = 'finished', changed = ?, exit_code = ?, cpu_time = ?, "
                "exit_reason = ? WHERE id = ? AND exit_reason IS NULL "
                "AND state IN ('queued', 'running', 'finished')",
                (
                    time.time(),
                    failure.exit_code,
                    failure.cpu_time,
                    text(failure.reason),
                    job_id,
                ),
            )
            if changed.rowcount == 1:
                connection.execute(
                    "INSERT INTO failure (job_id, stderr) VALUES (?, ?)",
                    (job_id, text(failure.stderr)),
                )

        self.store.write(change)

    def program_failure(self, job_id: int) -> ProgramFailure | None:
        """Return how a job's program failed, until that is in place; None if it did not fail."""
        rows = self.store.rows(
            "SELECT job.exit_code, job.cpu_time, job.exit_reason, failure.stderr FROM failure "
            "CROSS JOIN job ON job.id = failure.job_id WHERE failure.job_id = ?",
            job_id,
        )
        return ProgramFailure(*rows[0]) if rows else None

    def statuses(
        self, batch_id: int, changes: Mapping[str, Literal["queued", "running", "finished"]]
    ) -> None:
        """Note the project's states of a batch's jobs, by job name.

        Only ``queued`` and ``running`` jobs change; finished ones do not.
        """
        # Called at every poll: write only if there is something new.
        rows = self.store.rows(
            f"SELECT job.id, {JOB_NAME}, job.state "  # noqa: S608
            "FROM job CROSS JOIN batch ON batch.id = job.batch_id "
            "WHERE job.batch_id = ? AND job.state IN ('queued', 'running')",
            batch_id,
        )
        now = time.time()
        self.store.execute(
            "UPDATE job SET state = ?, changed = ? WHERE id = ? AND state IN ('queued', 'running')",
            *(
                (changes[name], now, job)
                for job, name, state in rows
                if changes.get(name, state) != state
            ),
        )

    def to_fetch(
        self,
        url: str,
        account: str,
        limit: int,
        *,
        of: int | None = None,
        without: Iterable[int] = (),
    ) -> list[JobRow]:
        """Return jobs whose outputs are to be fetched, oldest first, at most ``limit``.

        A job that HTCondor has not asked about for :data:`HTCONDOR_HAS_ASKED` waits until it asks:
        this file may be yesterday's, and HTCondor have told the user since that the job has ended.

        Args:
            url: the project's URL.
            account: the account there.
            limit: the most jobs.
            of: return only jobs of this batch.
            without: leave out jobs of these batches.
        """
        return self._job_rows(
            "WHERE job.project_id = ? AND job.state = 'finished' "
            "AND job.batch_id = coalesce(?, job.batch_id) "
            "AND job.batch_id NOT IN (SELECT value FROM json_each(?)) "
            "AND job.last_polled > ? ORDER BY job.id LIMIT ?",
            self._owner(url, account),
            of,
            json.dumps(list(without)),
            time.time() - HTCONDOR_HAS_ASKED,
            limit,
        )

    def writing(self, job_id: int, yes: bool) -> bool:
        """Note whether the job's directory is about to be written, or no longer written.

        Returns:
            Whether the job is ``finished``: if not, nothing must be written, and ``yes`` was not
            noted.
        """

        def change(connection: sqlite3.Connection) -> bool:
            connection.execute(
                "UPDATE job SET writing = ? WHERE id = ? AND (NOT ? OR state = 'finished')",
                (yes, job_id, yes),
            )
            row = connection.execute("SELECT state FROM job WHERE id = ?", (job_id,)).fetchone()
            return row is not None and row[0] == "finished"

        return self.store.write(change)

    def stop_writing(self, url: str, account: str) -> None:
        """Note that no directory is being written: for a new manager whose predecessor died."""
        self.store.execute(
            "UPDATE job SET writing = 0 WHERE project_id = ? AND writing = 1",
            (self._owner(url, account),),
        )

    def fetched(
        self,
        job_id: int,
        exit_code: int | None,
        cpu_time: float | None,
        *,
        elapsed_time: float | None = None,
        bytes_sent: int | None = None,
        bytes_received: int | None = None,
    ) -> Literal["done", "fetched", "gone"]:
        """Note that a finished job's outputs are in place and on the disk, and what it took.

        The arguments are attributes of :class:`~boinc_gahp.ledger.rows.JobRow`.

        Returns:
            ``done`` if its batch has other live jobs. ``fetched`` if not: then the batch has ended,
            and :meth:`close_batch` makes the job done. ``gone`` if the job was not finished (it was
            cancelled).
        """

        def change(connection: sqlite3.Connection) -> Literal["done", "fetched", "gone"]:
            row = connection.execute(
                "SELECT batch_id FROM job WHERE id = ? AND state = 'finished'", (job_id,)
            ).fetchone()
            if row is None:
                return "gone"
            now = time.time()
            connection.execute(
                "UPDATE job SET state = 'done', changed = ?, exit_code = ?, cpu_time = ?, "
                "elapsed_time = ?, bytes_sent = ?, bytes_received = ?, "
                "writing = 0, trouble = NULL WHERE id = ?",
                (now, exit_code, cpu_time, elapsed_time, bytes_sent, bytes_received, job_id),
            )
            connection.execute("DELETE FROM failure WHERE job_id = ?", (job_id,))
            end_if_last(connection, row[0])
            ended = connection.execute(
                "SELECT 1 FROM batch WHERE id = ? AND state = 'ended'", (row[0],)
            ).fetchone()
            if ended is None:
                return "done"
            connection.execute("UPDATE job SET state = 'fetched' WHERE id = ?", (job_id,))
            return "fetched"

        return self.store.write(change)

    def job_trouble(self, job_ids: Iterable[int], trouble: str | None) -> None:
        """Note the latest trouble of jobs, for people; None: there is none any more."""
        words = None if trouble is None else text(trouble)
        self.store.execute(
            "UPDATE job SET trouble = ? WHERE id = ? AND trouble IS NOT ?",
            *((words, job_id, words) for job_id in job_ids),
        )

    def project_trouble(self, url: str, account: str, trouble: str | None) -> None:
        """Note a project's current trouble, keeping the time of its beginning; None: it answers."""
        words = None if trouble is None else text(trouble)
        # Called at every poll: only what is new is written.
        self.store.execute(
            "UPDATE project SET trouble = ?1, trouble_since = iif(?1 IS NULL, NULL, "
            "coalesce(trouble_since, ?2)) WHERE id = ?3 AND trouble IS NOT ?1",
            (words, time.time(), self._owner(url, account)),
        )

    def troubles(self) -> dict[tuple[str, str], tuple[str, float]]:
        """Return the projects' troubles and when they began, by URL and account."""
        rows = self.store.rows(
            "SELECT url, account, trouble, trouble_since FROM project "
            "WHERE trouble IS NOT NULL ORDER BY id"
        )
        return {(url, account): (words, since) for url, account, words, since in rows}

    def set_unknown(self, url: str, account: str, yes: bool) -> float | None:
        """Note whether the settings lack an owner.

        Returns:
            Since when they have lacked it, in seconds since the epoch; None if they do not.
        """
        # Called every minute: write only if there is something new.
        owner = self._owner(url, account)
        rows = self.store.rows("SELECT unknown_since FROM project WHERE id = ?", owner)
        if not rows or (rows[0][0] is not None) == yes:
            return rows[0][0] if rows else None
        since = time.time() if yes else None
        self.store.execute("UPDATE project SET unknown_since = ? WHERE id = ?", (since, owner))
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

    def take_turn(self, what: str, now: float, every: float = DAY) -> bool:
        """Return whether this process should do ``what`` now: once in ``every`` seconds."""
        changed = self.store.execute(
            "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2 "
            # A time in the future was written before the clock was set back.
            "WHERE CAST(value AS REAL) NOT BETWEEN ?3 AND ?2",
            (what, now, now - every),
        )
        return changed == 1


def fail_job(connection: sqlite3.Connection, job_id: int, hold: Hold) -> None:
    """Let a live job fail, inside a change; its batch ends if this was its last live job."""
    row = connection.execute(
        f"SELECT batch_id FROM job WHERE id = ? AND state IN {ALIVE_SQL}",  # noqa: S608
        (job_id,),
    ).fetchone()
    if row is None:
        return
    connection.execute(
        "UPDATE job SET state = 'failed', changed = ?, writing = 0, hold_reason = ?, "
        "hold_code = ?, hold_subcode = ?, exit_code = ?, cpu_time = ? WHERE id = ?",
        (time.time(), text(hold.reason), *astuple(hold)[1:], job_id),
    )
    if row[0] is not None:
        end_if_last(connection, row[0])
