"""What a project contains and does, for ``local-project status`` and the page.

Rows are dictionaries from one snapshot. Times are seconds since the epoch, 0: not yet or never;
sizes are bytes, speeds operations a second, bandwidths bytes a second.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from boinc_gahp.localproject.backend import views
from boinc_gahp.localproject.backend.supervisor import PROGRAMS
from boinc_gahp.localproject.hosts.engine import engine_notice
from boinc_gahp.localproject.hosts.hosts import behaviours_of
from boinc_gahp.localproject.states import BatchState, ServerState
from boinc_gahp.states import JobState
from boinc_gahp.terminal.words import ago, at
from boinc_gahp.text import amount, count, size, span

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core

    #: A row, with what was calculated.
    Shown = dict[str, Any]

_NEWEST = 50

#: The states of a job for people, in the order in which they are shown. A job is in progress while
#: some host has an instance of it. One that was aborted has failed, as for a project.
STATES = ("queued", "in_progress", "done", "failed")
#: The state of a workunit ``w``.
_STATE = (
    "CASE WHEN w.canonical_resultid != 0 THEN 'done' WHEN w.error_mask != 0 THEN 'failed' "  # noqa: S608
    "WHEN EXISTS (SELECT 1 FROM result r WHERE r.workunitid = w.id "
    f"AND r.server_state = {ServerState.IN_PROGRESS:d}) THEN 'in_progress' ELSE 'queued' END"
)


def _counts(connection: sqlite3.Connection, where: str, *values: object) -> dict[str, int]:
    """Count jobs: all, and those in each of :data:`STATES`."""
    found = dict.fromkeys(STATES, 0)
    found |= dict(
        connection.execute(
            f"SELECT {_STATE} AS state, count(*) FROM workunit w WHERE {where} GROUP BY state",  # noqa: S608
            values,
        ).fetchall()
    )
    return {"total": sum(found.values()), **found}


_BATCH = (
    "SELECT b.id, b.name, b.state, b.user_id, coalesce(u.name, '') AS user, b.app_id, "
    "coalesce(a.name, '') AS app, b.create_time, b.completion_time, b.expire_time, "
    "(SELECT total(canonical_credit) FROM workunit WHERE batch = b.id) AS credit "
    "FROM batch b LEFT JOIN user u ON u.id = b.user_id LEFT JOIN app a ON a.id = b.app_id"
)


def _batch(connection: sqlite3.Connection, row: sqlite3.Row) -> Shown:
    jobs = _counts(connection, "w.batch = ?", row["id"])
    state = BatchState(row["state"])
    if state is BatchState.IN_PROGRESS and 0 < jobs["total"] == jobs["done"] + jobs["failed"]:
        # As query_batch does; only query_batch stores it.
        state = BatchState.COMPLETE
    return {**dict(row), "state": state, "jobs": jobs}


def overview(connection: sqlite3.Connection) -> Shown:
    """Return the newest batches that are not retired, and how many there are.

    ``totals`` counts the jobs of all these batches, and of none.
    """
    rows = connection.execute(
        f"{_BATCH} WHERE b.state != ? ORDER BY b.id DESC LIMIT ?", (BatchState.RETIRED, _NEWEST)
    ).fetchall()
    (number,) = connection.execute(
        "SELECT count(*) FROM batch WHERE state != ?", (BatchState.RETIRED,)
    ).fetchone()
    return {
        "batches": [_batch(connection, row) for row in rows],
        "number": number,
        "totals": _counts(
            connection, "w.batch NOT IN (SELECT id FROM batch WHERE state = ?)", BatchState.RETIRED
        ),
        "without_batch": _counts(connection, "w.batch = 0"),
    }


def hosts(connection: sqlite3.Connection) -> list[Shown]:
    """Return all hosts, the working ones first, with the results that they have.

    ``engine``: the container engine that a host offers, with its version; '': none, as far as it
    knows.
    """
    running: dict[int, list[sqlite3.Row]] = {}
    for row in connection.execute(
        "SELECT hostid, name, workunitid, sent_time FROM result "  # noqa: S608
        f"WHERE server_state = {ServerState.IN_PROGRESS:d} ORDER BY sent_time, id"
    ):
        running.setdefault(row["hostid"], []).append(row)
    return [
        {
            **dict(row),
            "running": running.get(row["id"], []),
            "behaviours": behaviours_of(connection, row["id"]),
        }
        for row in connection.execute(
            "SELECT id, domain_name AS name, active, p_fpops AS speed, m_nbytes AS memory, "
            "d_free AS disk, n_bwdown AS bandwidth, rpc_time, total_credit AS credit, "
            "CASE WHEN dont_use_docker THEN '' ELSE coalesce(docker_version, '') END AS engine "
            "FROM host ORDER BY active DESC, id"
        ).fetchall()
    ]


def programs(connection: sqlite3.Connection) -> list[Shown]:
    """Return every back-end program, also those that have not done anything yet."""
    rows = {row["name"]: dict(row) for row in connection.execute("SELECT * FROM program")}
    none = {"handled": 0, "error": "", "error_time": 0.0}
    return [{"name": name, **none, **rows.get(name, {})} for name in PROGRAMS]


def credit(granted: float) -> str:
    """Return credit in words: two decimals, or a single digit if it is less than 0.01."""
    return f"{granted:,.2f}" if granted >= 0.01 or not granted else f"{granted:.1g}"


# What the page of a project on this machine shows beside what it shows of every project: cards,
# with title, state, tags, facts, lines and texts.


def tabs(core: Core) -> dict[str, Any]:
    """Return functions that return the cards of each tab."""
    return {"Hosts": lambda: _host_cards(core), "Back end": lambda: _program_cards(core)}


def notices(core: Core) -> list[str]:
    """Return what everybody should know now."""
    found = [
        core.web_stopped and "The project's web is stopped: every RPC answers -183.",
        core.database_down and "The project's database is down: every RPC answers -138.",
        engine_notice(core.db.connection()),
    ]
    return [text for text in found if text]


def instances(core: Core, job_id: int) -> dict[int, Shown]:
    """Return a card for each instance of a job, by its id, with what the web RPCs do not tell."""
    with core.db.read() as connection:
        rows = connection.execute(
            "SELECT r.*, coalesce(h.domain_name, '') AS host FROM result r "
            "LEFT JOIN host h ON h.id = r.hostid WHERE r.workunitid = ?",
            (job_id,),
        ).fetchall()
    return {row["id"]: _instance_card(core, row) for row in rows}


def _instance_card(core: Core, row: sqlite3.Row) -> Shown:
    came = row["received_time"]
    facts = {
        "Host": row["host"],
        "Sent": _when(row["sent_time"]),
        "Reported" if came else "Deadline": _when(came or row["report_deadline"]),
    }
    if came:
        facts |= {
            "Exit status": str(row["exit_status"]),
            "Run time": _seconds(row["elapsed_time"]),
            "CPU time": _seconds(row["cpu_time"]),
            "Credit": credit(row["granted_credit"]),
        }
    said = row["stderr_out"]
    lines = [_between(said, "message"), views.instance(core, row).problem]
    texts = {"stderr": _between(said, "stderr_txt")}
    return {"facts": facts, "lines": [line for line in lines if line], "texts": texts}


def _host_cards(core: Core) -> list[Shown]:
    with core.db.read() as connection:
        found = [host for host in hosts(connection) if host["active"]]
    now = time.time()
    return [
        {
            "title": host["name"],
            "state": ("in_progress", "running") if host["running"] else ("queued", "idle"),
            "tags": list(map(str, host["behaviours"])),
            "facts": {
                "Speed": amount(host["speed"], "FLOPS"),
                "Memory": size(host["memory"]),
                "Disk": size(host["disk"]),
                "Bandwidth": f"{size(host['bandwidth'])}/s" if host["bandwidth"] else "",
                "Containers": host["engine"],
                "Credit": credit(host["credit"]),
            },
            "lines": [
                f"{job['name']} for {span(max(1, now - job['sent_time']))}"
                for job in host["running"]
            ],
        }
        for host in found
    ] or [{"title": "No host takes part"}]


def _program_cards(core: Core) -> list[Shown]:
    with core.db.read() as connection:
        found = programs(connection)
        loose = _counts(connection, "w.batch = 0")
    cards = [
        {
            "title": each["name"].replace("_", " "),
            "state": ("failed", "failed") if each["error"] else None,
            "facts": {"Handled": f"{each['handled']:,}", "Failed": _when(each["error_time"])},
            "texts": {"Its last error": each["error"]},
        }
        for each in found
    ]
    if loose["total"]:
        numbers = (f"{loose[state]:,} {JobState[state.upper()].value}" for state in STATES)
        lines = [f"{count(loose['total'], 'job')}: {', '.join(numbers)}"]
        cards.append({"title": "Jobs without a batch", "lines": lines})
    return cards


def _when(then: float) -> str:
    now = time.time()
    return "" if not then else ago(then, now) if then <= now else at(then)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else span(seconds)


def _between(text: str, tag: str) -> str:
    """Return what the client put between two tags around the app's stderr, or its message."""
    _, begin, rest = text.partition(f"<{tag}>\n")
    return rest.rpartition(f"</{tag}>")[0].strip("\n") if begin else ""
