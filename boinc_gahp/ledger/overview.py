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
from boinc_gahp.ledger.rows import ALIVE, ALIVE_SQL, ENDED_SQL, STATES, Tally, Trouble

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boinc_gahp.ledger.rows import BatchRow, State
    from boinc_gahp.ledger.store import Store


class Since(NamedTuple):
    """When the oldest job of a state was accepted, and came into that state (epoch)."""

    accepted: float
    changed: float


class Undelivered(NamedTuple):
    """Jobs that are done on the project and whose outputs cannot be delivered."""

    number: int
    since: float
    trouble: str


@dataclass(frozen=True, slots=True)
class Watch:
    """What :func:`overview` counts; times in seconds since the epoch.

    Attributes:
        now: debts with an earlier time are due.
        orphaned: live jobs that HTCondor has not asked about since then are orphans.
        undelivered: counts jobs done on the project since before then, with a trouble.
        held: counts jobs put on hold after that with one of ``hold_codes``.
        hold_codes: see ``held``.
        unpaid: counts batches with debts since before then and without a known reason.
    """

    now: float
    orphaned: float
    undelivered: float
    held: float
    hold_codes: tuple[int, ...]
    overdue: float


@dataclass(frozen=True, slots=True)
class Overview:
    """An owner's jobs and debts, in numbers. Times are seconds since the epoch.

    Attributes:
        url: the project's URL.
        account: the account there.
        project_name: its name in the settings; "" for the section ``[project]``.
        tally: jobs by state.
        oldest: the oldest job of each state that is not over, if there is one.
        polled: when the project last answered a question about jobs; None if unknown.
        last_polled: when HTCondor last asked about one of the live jobs; None if there are none.
        orphans: how many live jobs are orphans.
        trouble: what is wrong with the project.
        held: how many jobs were put on hold recently.
        undelivered: jobs whose outputs cannot be delivered; None if there are none.
        aborts: jobs that must be aborted on the project.
        retirements: batches that must be retired.
        given_up: batches that must be given up.
        unpaid: how many of these batches have waited for long, without a reason.
        debts: batches of interrupted BOINC_SUBMIT requests that must be aborted.
    """

    url: str
    account: str
    project_name: str
    tally: Tally = field(default_factory=Tally)
    oldest: dict[State, Since] | None = None
    polled: float | None = None
    last_polled: float | None = None
    orphans: int = 0
    trouble: Trouble | None = None
    held: int = 0
    undelivered: Undelivered | None = None
    aborts: int = 0
    retirements: int = 0
    given_up: int = 0
    overdue: int = 0
    debts: tuple[BatchRow, ...] = ()

    @property
    def owed(self) -> int:
        """The number of operations owed to the project."""
        return self.aborts + self.retirements + self.given_up + len(self.debts)


def overviews(store: Store, watch: Watch) -> list[Overview]:
    """Return an overview of each owner, oldest first, all at one moment.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    debts: dict[tuple[str, str], list[BatchRow]] = {}
    for batch in all_pending_aborts(store):
        # A submission whose time is not over may be under way.
        if batch.state == "giving_up" or batch.not_before < watch.now:
            owner = (url_identity(batch.project_url), batch.account)
            debts.setdefault(owner, []).append(batch)
    with store.read() as connection:
        owners = connection.execute(
            "SELECT id, url, account, name, trouble, trouble_since, polled FROM project ORDER BY id"
        ).fetchall()
        found = [
            _of_owner(connection, row, watch, debts.pop((url_identity(row[1]), row[2]), ()))
            for row in owners
        ]
    # Owners with only BOINC_* requests have debts, and nothing else.
    found += [
        Overview(its[-1].project_url, account, "", debts=tuple(its))
        for (_, account), its in debts.items()
    ]
    return found


def _of_owner(
    connection: sqlite3.Connection,
    row: tuple[int, str, str, str, str | None, float, float | None],
    watch: Watch,
    debts: Iterable[BatchRow],
) -> Overview:
    owner, url, account, name, trouble, since, polled = row
    tally = Tally(
        **dict(
            connection.execute(
                "SELECT state, count(*) FROM job WHERE project_id = ? GROUP BY state", (owner,)
            ).fetchall()
        )
    )
    asked, orphans = connection.execute(
        "SELECT max(asked), count(*) FILTER (WHERE asked < ?) FROM job "  # noqa: S608
        f"WHERE project_id = ? AND state IN {ALIVE_SQL}",
        (watch.orphaned, owner),
    ).fetchone()
    (held,) = connection.execute(
        f"SELECT count(*) FROM job WHERE state IN {ENDED_SQL} AND changed >= ? "  # noqa: S608
        "AND project_id = ? AND hold_code IN (SELECT value FROM json_each(?))",
        (watch.held, owner, json.dumps(watch.hold_codes)),
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
        (owner, watch.overdue),
    ).fetchone()
    (aborts,) = connection.execute(
        "SELECT count(*) FROM job WHERE project_id = ? AND abort_owed = 1", (owner,)
    ).fetchone()
    return Overview(
        url,
        account,
        name,
        tally=tally,
        oldest=_oldest(connection, owner, tally),
        polled=polled,
        last_polled=asked,
        orphans=orphans,
        trouble=None if trouble is None else Trouble(trouble, since),
        held=held,
        undelivered=_undelivered(connection, owner, watch.undelivered),
        aborts=aborts,
        retirements=batches.get("ended", 0),
        given_up=batches.get("giving_up", 0),
        overdue=overdue,
        debts=tuple(debts),
    )


def _oldest(connection: sqlite3.Connection, owner: int, tally: Tally) -> dict[State, Since]:
    found: dict[State, Since] = {}
    for state in STATES:
        if state in ALIVE and getattr(tally, state):
            found[state] = Since(
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
