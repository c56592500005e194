"""Numbers about a ledger, for people and for monitoring a submit node.

Monitoring may ask every minute, with hundreds of thousands of jobs. So jobs are counted by an
index, and of the jobs that are over only the latest are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boinc_gahp.config.urls import url_identity
from boinc_gahp.ledger.listing import all_pending_aborts
from boinc_gahp.ledger.rows import ALIVE, ALIVE_SQL, STATES

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.ledger.store import Store


def overviews(store: Store, now: float, orphaned: float) -> list[dict[str, Any]]:
    """Return an overview of each project and account, oldest first, all at one moment.

    Its keys are those of ``projects[]`` in ``docs/reference/json.rst``, "ledger status", but for
    ``known``, ``daemon`` and ``process``; times are seconds since the epoch.

    Args:
        store: the ledger.
        now: seconds since the epoch; BOINC_SUBMIT's batches with an earlier time are to be aborted.
        orphaned: live jobs that HTCondor has not asked about since then are orphans.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    with store.read() as connection:
        found = [
            _of_owner(connection, row, orphaned)
            for row in connection.execute(
                "SELECT id, url, account, name, trouble, trouble_since, polled FROM project "
                "ORDER BY id"
            ).fetchall()
        ]
    owners = {(url_identity(each["url"]), each["account"]): each for each in found}
    for batch in all_pending_aborts(store):
        # A submission whose time is not over may be under way.
        if batch.state == "giving_up" or batch.not_before < now:
            owner = (url_identity(batch.project_url), batch.account)
            if owner not in owners:
                owners[owner] = _overview(batch.project_url, batch.account)
            owners[owner]["owed"]["submit_aborts"] += 1
    with store.read() as connection:
        owed = connection.execute(
            "SELECT project_url, account, iif(command = 'abort', 'aborts', 'retirements'), "
            "count(*) FROM owed_request GROUP BY project_url, account, command"
        ).fetchall()
    for url, account, kind, number in owed:
        owner = (url_identity(url), account)
        owners.setdefault(owner, _overview(url, account))["owed"][kind] += number
    return list(owners.values())


def _overview(url: str, account: str, name: str = "", **known: Any) -> dict[str, Any]:
    """Return an overview of an owner of which only ``known`` is known."""
    return {
        "url": url,
        "project_name": name,
        "account": account,
        "last_poll": None,
        "last_asked": None,
        "trouble": None,
        "trouble_since": None,
        "orphans": 0,
        "owed": {"aborts": 0, "retirements": 0, "giving_up": 0, "submit_aborts": 0},
        "jobs": [{"state": state, "number": 0, "oldest": None, "since": None} for state in STATES],
        **known,
    }


def _of_owner(
    connection: sqlite3.Connection, row: tuple[Any, ...], orphaned: float
) -> dict[str, Any]:
    owner, url, account, name, trouble, trouble_since, polled = row
    last_asked, orphans = connection.execute(
        "SELECT max(last_polled), count(*) FILTER (WHERE last_polled < ?) FROM job "  # noqa: S608
        f"WHERE project_id = ? AND state IN {ALIVE_SQL}",
        (orphaned, owner),
    ).fetchone()
    found = _overview(
        url,
        account,
        name,
        last_poll=polled,
        last_asked=last_asked,
        trouble=trouble,
        trouble_since=trouble_since,
        orphans=orphans,
    )
    (found["owed"]["aborts"],) = connection.execute(
        "SELECT count(*) FROM job WHERE project_id = ? AND abort_pending = 1", (owner,)
    ).fetchone()
    for key, state in (("retirements", "ended"), ("giving_up", "giving_up")):
        (found["owed"][key],) = connection.execute(
            "SELECT count(*) FROM batch WHERE project_id = ? AND state = ?", (owner, state)
        ).fetchone()
    for each in found["jobs"]:
        of_state = "FROM job WHERE project_id = ? AND state = ?"
        (each["number"],) = connection.execute(
            f"SELECT count(*) {of_state}", (owner, each["state"])
        ).fetchone()
        if each["number"] and each["state"] in ALIVE:
            each["oldest"], each["since"] = connection.execute(
                f"SELECT accepted, changed {of_state} ORDER BY id LIMIT 1", (owner, each["state"])
            ).fetchone()
    return found
