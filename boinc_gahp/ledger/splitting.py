"""Divides batches that a project refuses without saying which job is to blame.

The parts become batches of their own in the same change that ends the old one. So no part is ever
mixed with another, or with waiting jobs, and a restart finds them unchanged. Their ``group_key``
says where they come from: ``<group_key>/<family>/<depth>``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.ledger._requests import Requests
from boinc_gahp.ledger.opening import text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class BatchPart:
    """A new batch from part of another's jobs; ``job_ids`` in the order of their numbers."""

    name: str
    group_key: str
    job_ids: Sequence[int]


class Splitting(Requests):
    """Changes for batches that a project refuses."""

    def sending(self, batch_id: int) -> frozenset[int]:
        """Return the numbers of a batch's jobs that still have to be sent."""
        with self._store.read() as connection:
            rows = connection.execute(
                "SELECT number FROM job WHERE batch_id = ? AND state = 'sending'", (batch_id,)
            )
            return frozenset(number for (number,) in rows)

    def divide(
        self, batch_id: int, parts: Sequence[BatchPart], trouble: str, lease_until: float
    ) -> bool:
        """Plan new batches of a batch's jobs, and end the old one, in one change.

        The batch was never sent (``planned``; an empty one may be on the project, so it becomes
        ``ended``, to be retired), or is over on the project (``giving_up``; becomes ``retired``).
        Jobs of the parts that are not being sent any more are left out; jobs of the batch that are
        in no part wait again.

        Args:
            batch_id: the batch.
            parts: the new batches.
            trouble: the reason, for people.
            lease_until: seconds since the epoch.

        Returns:
            Whether the batch was in one of these states; if not, nothing is changed.
        """

        def change(connection: sqlite3.Connection) -> bool:
            now = time.time()
            changed = connection.execute(
                "UPDATE batch SET changed = ?, not_before = 0, "
                "state = CASE state WHEN 'planned' THEN 'ended' ELSE 'retired' END "
                "WHERE id = ? AND state IN ('planned', 'giving_up')",
                (now, batch_id),
            )
            if changed.rowcount != 1:
                return False
            alive = {
                job_id
                for (job_id,) in connection.execute(
                    "SELECT id FROM job WHERE batch_id = ? AND state = 'sending'", (batch_id,)
                )
            }
            for part in parts:
                chosen = [job_id for job_id in part.job_ids if job_id in alive]
                if chosen:
                    new = _new_batch(connection, batch_id, part, (now, lease_until), trouble)
                    connection.executemany(
                        "UPDATE job SET batch_id = ?, number = ?, changed = ? WHERE id = ?",
                        [(new, number, now, job_id) for number, job_id in enumerate(chosen, 1)],
                    )
            connection.execute(
                "UPDATE job SET state = 'waiting', changed = ?, batch_id = NULL, number = NULL "
                "WHERE batch_id = ? AND state = 'sending'",
                (now, batch_id),
            )
            connection.execute(
                "UPDATE job SET abort_pending = 0 WHERE batch_id = ? AND abort_pending = 1",
                (batch_id,),
            )
            return True

        return self._store.write(change)

    def refused_parts(self, family: str, depth: int) -> int:
        """Return how many parts of a family were refused at a depth; 0 if one was accepted."""
        with self._store.read() as connection:
            accepted = connection.execute(
                "SELECT 1 FROM batch WHERE group_key LIKE ? AND (state IN ('submitted', 'ended') "
                "OR EXISTS (SELECT 1 FROM job WHERE job.batch_id = batch.id AND job.state IN "
                "('queued', 'running', 'finished', 'fetched', 'done'))) LIMIT 1",
                (f"%/{family}/%",),
            ).fetchone()
            if accepted is not None:
                return 0
            (count,) = connection.execute(
                "SELECT count(*) FROM batch WHERE group_key LIKE ? AND state = 'retired'",
                (f"%/{family}/{depth:d}",),
            ).fetchone()
            return int(count)


def _new_batch(
    connection: sqlite3.Connection,
    batch_id: int,
    part: BatchPart,
    times: tuple[float, float],
    trouble: str,
) -> int:
    now, lease_until = times
    row = connection.execute(
        "INSERT INTO batch (name, project_id, app_name, group_key, state, created, changed, "
        "lease_until, trouble) SELECT ?, project_id, app_name, ?, 'planned', ?, ?, ?, ? "
        "FROM batch WHERE id = ?",
        (text(part.name), part.group_key, now, now, lease_until, text(trouble), batch_id),
    )
    return int(row.lastrowid or 0)
