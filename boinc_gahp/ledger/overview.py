"""Numbers about a ledger, for monitoring a submit node.

Monitoring may ask every minute, with hundreds of thousands of jobs. So jobs are counted by an
index, and of the jobs that are over only the latest are read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.config import url_identity
from boinc_gahp.ledger.listing import all_pending_aborts
from boinc_gahp.ledger.rows import ALIVE, ALIVE_SQL, ENDED_SQL, STATES, JobCounts, Trouble

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boinc_gahp.ledger.rows import BatchRow, State
    from boinc_gahp.ledger.store import Store


class OldestJob(NamedTuple):
    """When the oldest job of a state was accepted, and came into that state (epoch)."""

    accepted: float
    changed: float


class Undelivered(NamedTuple):
    """Jobs that are done on the project and whose outputs cannot be delivered."""

    number: int
    since: float
    trouble: str


@dataclass(frozen=True, slots=True)
class OverviewOptions:
    """What :func:`overview` counts; times in seconds since the epoch.

    Attributes:
        now: aborts with an earlier time are due.
        orphaned: live jobs that HTCondor has not asked about since then are orphans.
        undelivered: counts jobs done on the project since before then, with a trouble.
        held: counts jobs put on hold after that with one of ``hold_codes``.
        hold_codes: see ``held``.
        overdue: counts batches to be retired or aborted since before then, without a known reason.
    """

    now: float
    orphaned: float
    undelivered: float
    held: float
    hold_codes: tuple[int, ...]
    overdue: float


@dataclass(frozen=True, slots=True)
class Overview:
    """An owner's jobs and pending requests, in numbers. Times are seconds since the epoch.

    Attributes:
        url: the project's URL.
        account: the account there.
        project_name: its name in the settings; "" for the section ``[project]``.
        job_counts: jobs by state.
        oldest: the oldest job of each state that is not over, if there is one.
        polled: when the project last answered a question about jobs; None if unknown.
        last_polled: when HTCondor last asked about one of the live jobs; None if there are none.
        orphans: how many live jobs are orphans.
        trouble: what is wrong with the project.
        held: how many jobs were put on hold recently.
        undelivered: jobs whose outputs cannot be delivered; None if there are none.
        aborts: jobs that must be aborted on the project.
        retirements: batches that must be retired.
        batch_aborts: batches that must be aborted.
        overdue: how many of these batches have waited for long, without a reason.
        submit_aborts: batches of interrupted BOINC_SUBMIT requests that must be aborted.
    """

    url: str
    account: str
    project_name: str
    job_counts: JobCounts = field(default_factory=JobCounts)
    oldest: dict[State, OldestJob] | None = None
    polled: float | None = None
    last_polled: float | None = None
    orphans: int = 0
    trouble: Trouble | None = None
    held: int = 0
    undelivered: Undelivered | None = None
    aborts: int = 0
    retirements: int = 0
    batch_aborts: int = 0
    overdue: int = 0
    submit_aborts: tuple[BatchRow, ...] = ()

    @property
    def pending(self) -> int:
        """The number of aborts and retirements that are to be sent to the project."""
        return self.aborts + self.retirements + self.batch_aborts + len(self.submit_aborts)


def overviews(store: Store, options: OverviewOptions) -> list[Overview]:
    """Return an overview of each owner, oldest first, all at one moment.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    submit_aborts: dict[tuple[str, str], list[BatchRow]] = {}
    for batch in all_pending_aborts(store):
        # A submission whose time is not over may be under way.
        if batch.state == "giving_up" or batch.not_before < options.now:
            owner = (url_identity(batch.project_url), batch.account)
            submit_aborts.setdefault(owner, []).append(batch)
    with store.read() as connection:
        owners = connection.execute(
            "SELECT id, url, account, name, trouble, trouble_since, polled FROM project ORDER BY id"
        ).fetchall()
        found = [
            _of_owner(
                connection, row, options, submit_aborts.pop((url_identity(row[1]), row[2]), ())
            )
            for row in owners
        ]
    # Owners with only BOINC_* requests have these aborts, and nothing else.
    found += [
        Overview(its[-1].project_url, account, "", submit_aborts=tuple(its))
        for (_, account), its in submit_aborts.items()
    ]
    return found


def _of_owner(
    connection: sqlite3.Connection,
    row: tuple[int, str, str, str, str | None, float, float | None],
    options: OverviewOptions,
    submit_aborts: Iterable[BatchRow],
) -> Overview:
    owner, url, account, name, trouble, since, polled = row
    job_counts = JobCounts(
        **dict(
            connection.execute(
                "SELECT state, count(*) FROM job WHERE project_id = ? GROUP BY state", (owner,)
            ).fetchall()
        )
    )
    last_polled, orphans = connection.execute(
        "SELECT max(last_polled), count(*) FILTER (WHERE last_polled < ?) FROM job "  # noqa: S608
        f"WHERE project_id = ? AND state IN {ALIVE_SQL}",
        (options.orphaned, owner),
    ).fetchone()
    (held,) = connection.execute(
        f"SELECT count(*) FROM job WHERE state IN {ENDED_SQL} AND changed >= ? "  # noqa: S608
        "AND project_id = ? AND hold_code IN (SELECT value FROM json_each(?))",
        (options.held, owner, json.dumps(options.hold_codes)),
    ).fetchone()
    batches = dict(
        connection.execute(
            "SELECT state, count(*) FROM batch WHERE project_id = ? "
            "AND state IN ('ended', 'giving_up') GROUP BY state",
            (owner,),
        ).fetchall()
    )
    (overdue,) = connection.execute(
        "SELECT count(*) FROM batch WHERE project_id = ? AND state IN ('ended', 'giving_up') "
        "AND trouble IS NULL AND changed < ?",
        (owner, options.overdue),
    ).fetchone()
    (aborts,) = connection.execute(
        "SELECT count(*) FROM job WHERE project_id = ? AND abort_pending = 1", (owner,)
    ).fetchone()
    return Overview(
        url,
        account,
        name,
        job_counts=job_counts,
        oldest=_oldest(connection, owner, job_counts),
        polled=polled,
        last_polled=last_polled,
        orphans=orphans,
        trouble=None if trouble is None else Trouble(trouble, since),
        held=held,
        undelivered=_undelivered(connection, owner, options.undelivered),
        aborts=aborts,
        retirements=batches.get("ended", 0),
        batch_aborts=batches.get("giving_up", 0),
        overdue=overdue,
        submit_aborts=tuple(submit_aborts),
    )


def _oldest(
    connection: sqlite3.Connection, owner: int, job_counts: JobCounts
) -> dict[State, OldestJob]:
    found: dict[State, OldestJob] = {}
    for state in STATES:
        if state in ALIVE and getattr(job_counts, state):
            found[state] = OldestJob(
                *connection.execute(
                    "SELECT accepted, changed FROM job WHERE project_id = ? AND state = ? "
                    "ORDER BY id LIMIT 1",
                    (owner, state),
                ).fetchone()
            )
    return found


def _undelivered(connection: sqlite3.Connection, owner: int, before: float) -> Undelivered | None:
    # The trouble comes from the row with the minimum (SQLite's documentation, "Bare columns in an
    # aggregate query").
    number, since, trouble = connection.execute(
        "SELECT count(*), min(changed), trouble FROM job WHERE project_id = ? "
        "AND state = 'finished' AND trouble IS NOT NULL AND changed <= ?",
        (owner, before),
    ).fetchone()
    return Undelivered(number, since, trouble) if number else None
