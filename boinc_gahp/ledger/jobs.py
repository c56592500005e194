"""The ledger of HTCondor's jobs, and of the batches in which they are sent."""

from __future__ import annotations

import json
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from boinc_gahp.config.urls import url_identity
from boinc_gahp.ledger._batches import Batches
from boinc_gahp.ledger._progress import Progress
from boinc_gahp.ledger._requests import owner_row
from boinc_gahp.ledger.monitoring import Problems
from boinc_gahp.ledger.opening import text
from boinc_gahp.ledger.rows import (
    ALIVE_SQL,
    ENDED_SQL,
    OF_SUBMIT,
    PROJECT_IDENTITY,
    STATES,
    BatchRow,
    JobRow,
    project_id,
)
from boinc_gahp.ledger.store import CHUNK

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Sequence

#: The most digits of a job's id; SQLite can look for all such numbers.
_DIGITS = 18
_CLUSTER_PROC = re.compile(r"[0-9]+\.[0-9]+")
_JOB_NAME = re.compile(r"(.+)-([0-9]{1,9})")


class Moved(NamedTuple):
    """How much :meth:`JobLedger.move` moved."""

    jobs: int
    batches: int
    submit_aborts: int


class JobLedger(Batches, Progress, Problems):
    """Everything known about the jobs; a daemon that starts relies on nothing else.

    Rows belong to an owner: a project (by any of its addresses) and an account
    (:attr:`Authenticator.account`, never the authenticator). Every method may be called from any
    thread, by several processes at once; its change is on the disk when it returns. A change that
    the state does not allow changes nothing, for example if the job was cancelled meanwhile.

    When the last live job of a batch fails or is cancelled, the batch ends: ``submitted`` and
    ``planned`` batches become ``ended``. ``sent`` ones become ``giving_up``, because their jobs may
    still appear.

    Its own methods are for ``boinc_gahp ledger``; they list jobs without descriptions.

    Raises:
        LedgerError: by every method: the file cannot be read or written.
    """

    def under_way(self, url: str, account: str) -> list[JobRow]:
        """Return an owner's jobs that are alive or must be aborted, oldest first.

        Also those on hold of which HTCondor does not know yet.
        """
        return self._job_rows(
            # Each of the alternatives has an index of its own.
            "WHERE job.project_id = ?1 AND job.abort_pending = 1 "
            f"OR job.project_id = ?1 AND job.state IN {ALIVE_SQL} "
            "OR job.project_id = ?1 AND job.state = 'failed' AND NOT job.end_reported "
            "ORDER BY job.id",
            self._owner(url, account),
            described=False,
        )

    def counts(self, batch_id: int) -> dict[str, int]:
        """Return how many jobs of a batch are in each state, without empty states."""
        found = dict(
            self.store.rows(
                "SELECT state, count(*) FROM job WHERE batch_id = ? GROUP BY state", batch_id
            )
        )
        return {state: found[state] for state in STATES if state in found}

    def find_jobs(self, words: str) -> list[JobRow]:
        """Return the jobs that ``words`` may mean, oldest first.

        ``17``, ``boinc/<token>.17`` or ``<token>.17`` is a job's id, and only that. Otherwise: a
        JobDirectory; ``12.0``, the cluster and process in one; a name on the project; else a part
        of a JobDirectory.
        """
        for rest, value in self._job_questions(words):
            if found := self._job_rows(f"{rest} ORDER BY job.id", *value):
                return found
        return []

    def find_batches(self, words: str) -> list[BatchRow]:
        """Return the batches with this name; else those whose names begin so, oldest first.

        BOINC_SUBMIT's are left out, as there is nothing to show of them.
        """
        name = text(words)
        if not name:
            return []
        found = self._batch_rows(
            "WHERE batch.project_id IS NOT NULL AND substr(batch.name, 1, ?) = ? ORDER BY batch.id",
            len(name),
            name,
        )
        return [batch for batch in found if batch.name == name] or found

    def forget(
        self, job_ids: Collection[int], batch_ids: Collection[int] = (), *, alive: bool = False
    ) -> int:
        """Drop jobs, and batches with all their jobs; return how many jobs. No project is told.

        Without ``alive``, jobs that are alive or have to be aborted stay, and so do their batches.
        A batch that loses its last live jobs here counts as retired: nothing more is done for it.
        Batches without jobs are dropped once they are retired.
        """
        of_batches = self.store.rows(
            "SELECT id FROM job WHERE batch_id IN (SELECT value FROM json_each(?))",
            json.dumps(list(batch_ids)),
        )
        wanted = sorted({*job_ids, *(job_id for (job_id,) in of_batches)})
        dropped = sum(
            self.store.write(partial(_drop_jobs, wanted[start : start + CHUNK], alive))
            for start in range(0, len(wanted), CHUNK)
        )
        self.store.execute(_DROP_BATCH, *((batch_id, alive) for batch_id in batch_ids))
        return dropped

    def _job_questions(self, words: str) -> Iterable[tuple[str, tuple[object, ...]]]:
        """Yield the look-ups, in order, each as a condition and its values."""
        is_id = words.isascii() and words.isdecimal() and len(words) <= _DIGITS
        number = int(words) if is_id else self.number_of(words)
        if number is not None or words.startswith("boinc/"):
            yield "WHERE job.id = ?", (number,)
            return
        yield "WHERE job.job_directory = ?", (text(words),)
        if _CLUSTER_PROC.fullmatch(words):
            # gridmanager-batch.rst, "The submit ad": ..._<cluster.proc>_<qdate>
            yield "WHERE instr(job.job_directory, ?) > 0", (f"_{words}_",)
            return
        name = _JOB_NAME.fullmatch(text(words))
        if name:
            of_batch = "SELECT id FROM batch WHERE name = ? AND project_id IS NOT NULL"
            yield f"WHERE job.batch_id = ({of_batch}) AND job.number = ?", (name[1], int(name[2]))
        if words:
            yield "WHERE instr(job.job_directory, ?) > 0", (text(words),)

    # -- boinc_gahp ledger move

    def accounts(self, url: str) -> list[str]:
        """Return the accounts with anything in the ledger for a project."""
        rows = self.store.rows(
            f"SELECT account FROM project WHERE {PROJECT_IDENTITY} = ?1 "  # noqa: S608
            "UNION SELECT project_account FROM batch WHERE project_id IS NULL AND identity = ?1 "
            "UNION SELECT account FROM aborted_job WHERE identity = ?1 "
            "UNION SELECT account FROM owed_request WHERE identity = ?1 ORDER BY account",
            url_identity(url),
        )
        return [account for (account,) in rows]

    def move(self, old: tuple[str, str], new: tuple[str, str], name: str) -> Moved:
        """Move everything of one owner to another, which may have jobs already.

        No process may be working for the old owner
        (:class:`~boinc_gahp.ledger.account_lock.AccountLock`).

        Args:
            old: the old project URL and account.
            new: the new project URL and account.
            name: the new project's name in the settings; "" for the section ``[project]``.
        """
        was = (url_identity(old[0]), old[1])

        def change(connection: sqlite3.Connection) -> Moved:
            source = project_id(connection, *old)
            jobs = batches = 0
            target = owner_row(connection, *new, text(name)) if source else source
            if target != source:
                jobs = connection.execute(
                    "UPDATE job SET project_id = ?, project_name = ?, writing = 0 "
                    "WHERE project_id = ?",
                    (target, text(name), source),
                ).rowcount
                # Their old troubles may not apply to the new owner.
                batches = connection.execute(
                    "UPDATE batch SET project_id = ?, trouble = NULL, trouble_since = NULL "
                    "WHERE project_id = ?",
                    (target, source),
                ).rowcount
                connection.execute("DELETE FROM project WHERE id = ?", (source,))
            submit_aborts = connection.execute(
                "UPDATE OR REPLACE batch SET project_url = ?, project_account = ? "  # noqa: S608
                f"WHERE {OF_SUBMIT}",
                (*new, *was),
            ).rowcount
            for table in ("aborted_job", "owed_request"):
                connection.execute(
                    f"UPDATE OR REPLACE {table} SET project_url = ?, account = ? "  # noqa: S608
                    "WHERE identity = ? AND account = ?",
                    (*new, *was),
                )
            return Moved(jobs, batches, submit_aborts)

        return self.store.write(change)


def _drop_jobs(job_ids: Sequence[int], alive: bool, connection: sqlite3.Connection) -> int:
    """Drop jobs, and what is left of their batches; those that are alive only with ``alive``."""
    these = (
        "job WHERE id IN (SELECT value FROM json_each(?)) "  # noqa: S608
        f"AND (? OR state IN {ENDED_SQL} AND abort_pending = 0)"
    )
    values = (json.dumps(job_ids), alive)
    batches = connection.execute(
        f"SELECT batch_id, max(state NOT IN {ENDED_SQL}) FROM {these} "  # noqa: S608
        "AND batch_id IS NOT NULL GROUP BY batch_id",
        values,
    ).fetchall()
    dropped = connection.execute(f"DELETE FROM {these}", values).rowcount  # noqa: S608
    connection.executemany(
        "UPDATE batch SET state = 'retired', changed = ? WHERE id = ? AND NOT EXISTS "  # noqa: S608
        f"(SELECT * FROM job WHERE batch_id = batch.id AND state NOT IN {ENDED_SQL})",
        [(time.time(), batch_id) for batch_id, lost_one_alive in batches if lost_one_alive],
    )
    connection.executemany(_DROP_BATCH, [(batch_id, False) for batch_id, _ in batches])
    return dropped


#: Drops a batch without jobs; one that is not retired only if the second value is true.
_DROP_BATCH: Final = (
    "DELETE FROM batch WHERE id = ? AND (? OR state = 'retired') AND NOT EXISTS "
    "(SELECT * FROM job WHERE batch_id = batch.id)"
)
