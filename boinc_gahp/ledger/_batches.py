"""The manager's side of the ledger: batches, from their plan to their end.

If a project refuses a batch without saying which job is to blame, the batch is divided. The parts
become batches of their own in the same change that ends the old one. So no part is ever mixed with
another, or with waiting jobs, and a restart finds them unchanged. Their ``group_key`` says where
they come from: ``<group_key>/<family>/<depth>``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from boinc_gahp.ledger._requests import Requests, change_batch, end_if_last
from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.rows import (
    ALIVE_SQL,
    BATCH_STATES,
    HAS_WORK,
    HTCONDOR_HAS_ASKED,
    STATES,
    UNCLEAR,
    BatchRow,
    JobRow,
    batch_rows,
    column,
    project_id,
    sql_set,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence

#: States of a batch that may still be sent.
_UNSUBMITTED = ("planned", "sent")
_NO_TROUBLE = "trouble = NULL, trouble_since = NULL"


class Batches(Requests):
    """The manager's changes to batches. A change that the state does not allow changes nothing."""

    def owners(self) -> tuple[tuple[str, str, str], ...]:
        """Return URL, account and project name of owners with live jobs or requests to send."""
        return tuple(
            self.store.rows(
                f"SELECT url, account, name FROM project WHERE {HAS_WORK} ORDER BY id"  # noqa: S608
            )
        )

    def waiting(self, url: str, account: str) -> list[JobRow]:
        """Return the jobs that are not in a batch, oldest first, without their descriptions.

        One that HTCondor has not asked about lately is not among them: this file may be
        yesterday's, and the job have been sent since.
        """
        return self._job_rows(
            "WHERE job.project_id = ? AND job.state = 'waiting' AND job.last_polled > ? "
            "ORDER BY job.id",
            self._owner(url, account),
            time.time() - HTCONDOR_HAS_ASKED,
            described=False,
        )

    def plan(  # noqa: PLR0917
        self,
        url: str,
        account: str,
        name: str,
        app_name: str,
        group_key: str,
        job_ids: Iterable[int],
        lease_until: float,
    ) -> BatchRow | None:
        """Make a batch of the given jobs that still wait, numbered from 1 in that order.

        Returns:
            The batch, ``planned``; None if none of the jobs waits any more.
        """
        wanted = dict.fromkeys(job_ids)

        def change(connection: sqlite3.Connection) -> BatchRow | None:
            owner = project_id(connection, url, account)
            waiting = "SELECT id FROM job WHERE project_id = ? AND state = 'waiting'"
            values = (text(name), owner, text(app_name), text(group_key), lease_until, None)
            batch_id = _plan(connection, values, wanted, column(connection, waiting, (owner,)))
            rows = batch_rows(connection, "WHERE batch.id = ?", (batch_id,))
            return rows[0] if rows else None

        return self.store.write(change)

    def batches(self, url: str, account: str, *states: str) -> list[BatchRow]:
        """Return an owner's batches in these states (without any: in all states), oldest first."""
        return self._batch_rows(
            f"WHERE batch.project_id = ? AND batch.state IN {sql_set(states or BATCH_STATES)} "
            "ORDER BY batch.id",
            self._owner(url, account),
        )

    def batch(self, batch_id: int) -> BatchRow | None:
        """Return a batch, or None if the ledger does not have it (any more)."""
        rows = self._batch_rows("WHERE batch.id = ?", batch_id)
        return rows[0] if rows else None

    def jobs_of(self, batch_id: int, *states: str, described: bool = True) -> list[JobRow]:
        """Return a batch's jobs in these states (without any: in all states), ordered by name.

        ``described``: with their descriptions, which are long.
        """
        return self._job_rows(
            f"WHERE job.batch_id = ? AND job.state IN {sql_set(states or STATES)} "
            "ORDER BY job.number",
            batch_id,
            described=described,
        )

    def about_to_send(
        self, batch_id: int, project_batch_id: int, job_ids: Collection[int]
    ) -> Literal["go", "changed", "over"]:
        """Note that a submit_batch with exactly these jobs is about to be sent.

        Other jobs of the batch, which have ended before, leave it. From now on, the batch has the
        jobs that may be on the project under its name.

        Returns:
            ``go``: it may be sent, and this was noted. ``changed``: one of the jobs has ended since
            the request was made, and the batch was never sent; nothing was noted. ``over``: the
            batch is neither planned nor sent any more; nothing was noted.
        """
        sent = frozenset(job_ids)

        def change(connection: sqlite3.Connection) -> Literal["go", "changed", "over"]:
            row = connection.execute("SELECT state FROM batch WHERE id = ?", (batch_id,)).fetchone()
            if row is None or row[0] not in _UNSUBMITTED:
                return "over"
            states = dict(
                connection.execute("SELECT id, state FROM job WHERE batch_id = ?", (batch_id,))
            )
            if row[0] == "planned" and any(states.get(job_id) != "sending" for job_id in sent):
                return "changed"
            change_batch(
                connection,
                batch_id,
                _UNSUBMITTED,
                "state = 'sent', project_batch_id = ?",
                project_batch_id,
            )
            connection.executemany(
                "UPDATE job SET batch_id = NULL, number = NULL, abort_pending = 0 WHERE id = ?",
                [(job_id,) for job_id in states if job_id not in sent],
            )
            return "go"

        return self.store.write(change)

    def submitted(self, batch_id: int, project_batch_id: int) -> None:
        """Note that all jobs of the batch are on the project: jobs being sent become queued."""

        def change(connection: sqlite3.Connection) -> None:
            what = "state = 'submitted', project_batch_id = ?, not_before = 0, " + _NO_TROUBLE
            if change_batch(connection, batch_id, _UNSUBMITTED, what, project_batch_id):
                connection.execute(
                    "UPDATE job SET state = 'queued', changed = ? "
                    "WHERE batch_id = ? AND state = 'sending'",
                    (time.time(), batch_id),
                )
                end_if_last(connection, batch_id)

        self.store.write(change)

    def drop_from_batch(self, batch_id: int) -> None:
        """End a batch that was never created, or was rolled back and is over on the project.

        It becomes ``retired``. Its jobs that were being sent wait again, without a batch; no aborts
        are pending for the others. A batch that is submitted or ended does not change.
        """

        def change(connection: sqlite3.Connection) -> None:
            if change_batch(connection, batch_id, UNCLEAR, "state = 'retired'"):
                _give_back(connection, batch_id)

        self.store.write(change)

    def begin_abort(self, batch_id: int, not_before: float) -> None:
        """Note that the batch must be aborted for good, at ``not_before`` or later."""
        what = "state = 'giving_up', not_before = ?"
        self.store.write(lambda ledger: change_batch(ledger, batch_id, UNCLEAR, what, not_before))

    def close_batch(self, batch_id: int, retired: bool) -> None:
        """Mark the jobs of an ended batch as done; ``retired``: it needs no retirement any more."""

        def change(connection: sqlite3.Connection) -> None:
            # Only a batch that has ended has such jobs.
            connection.execute(
                "UPDATE job SET state = 'done', changed = ? "
                "WHERE batch_id = ? AND state = 'fetched'",
                (time.time(), batch_id),
            )
            if retired:
                change_batch(connection, batch_id, ["ended"], f"state = 'retired', {_NO_TROUBLE}")

        self.store.write(change)

    def on_project(self, url: str, account: str) -> dict[int, int]:
        """Return how many jobs are alive in each submitted batch that has any."""
        rows = self.store.rows(
            "SELECT id, (SELECT count(*) FROM job WHERE job.batch_id = batch.id "  # noqa: S608
            f"AND job.state IN {ALIVE_SQL}) AS alive "
            "FROM batch WHERE project_id = ? AND state = 'submitted' AND alive > 0 ORDER BY id",
            self._owner(url, account),
        )
        return dict(rows)

    def pending_aborts(self, url: str, account: str, *states: str) -> list[JobRow]:
        """Return the cancelled jobs that must still be aborted on the project.

        ``states``: only jobs of batches in these states (without any: in all states).
        """
        return self._job_rows(
            "WHERE job.project_id = ? AND job.abort_pending = 1 "
            f"AND batch.state IN {sql_set(states or BATCH_STATES)} ORDER BY job.id",
            self._owner(url, account),
            described=False,
        )

    def abort_done(self, job_ids: Iterable[int]) -> None:
        """Note that these jobs were aborted, or that this is not needed any more."""
        self.store.execute(
            "UPDATE job SET abort_pending = 0 WHERE id = ?", *((job_id,) for job_id in job_ids)
        )

    def leases(
        self, url: str, account: str, now: float, ahead: float, silence: float
    ) -> list[BatchRow]:
        """Return the batches to renew: their lease ends within ``ahead`` seconds.

        HTCondor must have asked about one of the batch's live jobs within ``silence`` seconds.
        """
        return self._batch_rows(
            "WHERE batch.project_id = ? AND batch.state IN ('sent', 'submitted') "  # noqa: S608
            "AND batch.lease_until < ? AND EXISTS (SELECT * FROM job "
            f"WHERE job.batch_id = batch.id AND job.state IN {ALIVE_SQL} "
            "AND job.last_polled >= ?) ORDER BY batch.lease_until, batch.id",
            self._owner(url, account),
            now + ahead,
            now - silence,
        )

    def leased(self, batch_id: int, until: float) -> None:
        """Note when the project may expire the batch."""
        what = "lease_until = ?"
        self.store.write(lambda ledger: change_batch(ledger, batch_id, BATCH_STATES, what, until))

    # -- batches that a project refuses without saying which job is to blame

    def sending(self, batch_id: int) -> frozenset[int]:
        """Return the numbers of a batch's jobs that still have to be sent."""
        rows = self.store.rows(
            "SELECT number FROM job WHERE batch_id = ? AND state = 'sending'", batch_id
        )
        return frozenset(number for (number,) in rows)

    def divide(
        self,
        batch_id: int,
        parts: Mapping[str, Sequence[int]],
        group_key: str,
        trouble: str,
        lease_until: float,
    ) -> bool:
        """Plan new batches of a batch's jobs, and end the old one, in one change.

        The batch was never sent (``planned``; an empty one may be on the project, so it becomes
        ``ended``, to be retired), or is over on the project (``giving_up``; becomes ``retired``).
        Jobs of the parts that are not being sent any more are left out; jobs of the batch that are
        in no part wait again.

        Args:
            batch_id: the batch.
            parts: names of the new batches, and the ids of their jobs in the order of their
                numbers.
            group_key: of the new batches.
            trouble: the reason, for people.
            lease_until: seconds since the epoch.

        Returns:
            Whether the batch was in one of these states; if not, nothing is changed.
        """

        def change(connection: sqlite3.Connection) -> bool:
            over = "state = CASE state WHEN 'planned' THEN 'ended' ELSE 'retired' END"
            its = ("planned", "giving_up")
            if not change_batch(connection, batch_id, its, f"{over}, not_before = 0"):
                return False
            sending = "SELECT id FROM job WHERE batch_id = ? AND state = 'sending'"
            alive = column(connection, sending, (batch_id,))
            owner, app_name = connection.execute(
                "SELECT project_id, app_name FROM batch WHERE id = ?", (batch_id,)
            ).fetchone()
            for name, job_ids in parts.items():
                values = (text(name), owner, app_name, group_key, lease_until, text(trouble))
                _plan(connection, values, job_ids, alive)
            _give_back(connection, batch_id)
            return True

        return self.store.write(change)

    def refused_parts(self, family: str, depth: int) -> int:
        """Return how many parts of a family were refused at a depth; 0 if one was accepted."""
        accepted = self.store.rows(
            "SELECT 1 FROM batch WHERE group_key LIKE ? AND (state IN ('submitted', 'ended') "
            "OR EXISTS (SELECT 1 FROM job WHERE job.batch_id = batch.id AND job.state IN "
            "('queued', 'running', 'finished', 'fetched', 'done'))) LIMIT 1",
            f"%/{family}/%",
        )
        refused = self.store.rows(
            "SELECT 1 FROM batch WHERE group_key LIKE ? AND state = 'retired'",
            f"%/{family}/{depth:d}",
        )
        return 0 if accepted else len(refused)


def _plan(
    connection: sqlite3.Connection,
    values: tuple[object, ...],
    wanted: Iterable[int],
    present: Iterable[int],
) -> int | None:
    """Make a batch of those of the wanted jobs that are present, numbered from 1 in that order.

    Returns:
        Its id; None if none of them is present.
    """
    there = frozenset(present)
    job_ids = [job_id for job_id in wanted if job_id in there]
    if not job_ids:
        return None
    now = time.time()
    batch_id = connection.execute(
        "INSERT INTO batch (name, project_id, app_name, group_key, lease_until, trouble, state, "
        "created, changed) VALUES (?, ?, ?, ?, ?, ?, 'planned', ?, ?)",
        (*values, now, now),
    ).lastrowid
    connection.executemany(
        "UPDATE job SET state = 'sending', changed = ?, batch_id = ?, number = ?, "
        "trouble = NULL WHERE id = ?",
        [(now, batch_id, number, job_id) for number, job_id in enumerate(job_ids, 1)],
    )
    return batch_id


def _give_back(connection: sqlite3.Connection, batch_id: int) -> None:
    """Let the jobs of a batch that is over wait again; none of its jobs is to be aborted."""
    connection.execute(
        "UPDATE job SET abort_pending = 0 WHERE batch_id = ? AND abort_pending = 1", (batch_id,)
    )
    connection.execute(
        "UPDATE job SET state = 'waiting', changed = ?, batch_id = NULL, number = NULL "
        "WHERE batch_id = ? AND state = 'sending'",
        (time.time(), batch_id),
    )
