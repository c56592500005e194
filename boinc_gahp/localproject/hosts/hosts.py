"""The volunteer hosts: the properties that they claim, and which of them work now.

They are called ``volunteer-0``, ``volunteer-1``, … and are identical until :func:`set_host` changes
one.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from boinc_gahp.localproject.directory import VOLUNTEERS
from boinc_gahp.localproject.states import ServerState

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.database import Database

#: What a host claims: operations a second, bytes, bytes, bytes a second. BOINC's columns, and what
#: a new host has.
_CAPACITIES = {
    "speed": ("p_fpops", 1e9),
    "memory": ("m_nbytes", 16e9),
    "disk": ("d_free", 1e12),
    "bandwidth": ("n_bwdown", 1e9),
}


def register(database: Database, count: int) -> list[int]:
    """Let only the first ``count`` hosts work; return their ids.

    A host that existed before keeps its capacity. The other hosts' results go to these: the others
    are known to be gone, so there is no deadline to wait for. But a result with which a host has
    vanished waits for its deadline. No host has looked for a container engine yet.
    """
    new = [value for _, value in _CAPACITIES.values()]
    with database.write() as connection:
        (owner,) = connection.execute(
            "SELECT id FROM user WHERE name = ?", (VOLUNTEERS,)
        ).fetchone()
        connection.execute("UPDATE host SET active = 0, docker_version = NULL")
        for number in range(count):
            connection.execute(
                "INSERT INTO host (create_time, userid, domain_name, p_fpops, m_nbytes, d_free, "
                "n_bwdown) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (domain_name) DO UPDATE SET active = 1",
                (time.time(), owner, f"volunteer-{number}", *new),
            )
        connection.execute(
            "UPDATE result SET server_state = ?, hostid = 0, behaviour = '' "
            "WHERE server_state = ? AND behaviour NOT LIKE '%vanish%' "
            "AND hostid IN (SELECT id FROM host WHERE active = 0)",
            (ServerState.UNSENT, ServerState.IN_PROGRESS),
        )
        return [
            row["id"] for row in connection.execute("SELECT id FROM host WHERE active ORDER BY id")
        ]


def results_in_progress(database: Database) -> list[int]:
    """Return the ids of the results that hosts have."""
    rows = database.connection().execute(
        "SELECT id FROM result WHERE server_state = ?", (ServerState.IN_PROGRESS,)
    )
    return [row["id"] for row in rows]


def set_host(
    database: Database, name: str, *, engine: bool | None = None, **capacities: float
) -> None:
    """Change the properties that a host claims, for now and for later runs.

    ``engine``: whether it offers the machine's container engine; None: as before. The others are
    ``speed``, ``memory``, ``disk`` and ``bandwidth``, in operations and bytes (a second).

    Raises:
        ValueError: there is no such host, or a value is not a positive number.
    """
    for each, value in capacities.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{each} {value!r} of host {name!r}: expected a positive number")
    new = {_CAPACITIES[each][0]: value for each, value in capacities.items()}
    with database.write() as connection:
        host_id = find(connection, name)
        if engine is not None:
            new["dont_use_docker"] = int(not engine)
        for column, value in new.items():
            connection.execute(
                f"UPDATE host SET {column} = ? WHERE id = ?",  # noqa: S608
                (value, host_id),
            )


def find(connection: sqlite3.Connection, name: str) -> int:
    """Return a host's id.

    Raises:
        ValueError: there is no such host; the text lists those that exist.
    """
    row = connection.execute("SELECT id FROM host WHERE domain_name = ?", (name,)).fetchone()
    if row is not None:
        return int(row["id"])
    names = [name for (name,) in connection.execute("SELECT domain_name FROM host ORDER BY id")]
    there = (
        f"the hosts are {', '.join(names)}"
        if names
        else "a project makes its hosts when it runs (boinc_gahp local-project run --hosts N)"
    )
    raise ValueError(f"there is no host {name!r}; {there}")


def mean_speed(connection: sqlite3.Connection) -> float:
    """Return the mean speed of the hosts that work now, in operations a second.

    Without any it is 1e9, which the real server assumes for an app that it knows nothing about.
    """
    number, speed = connection.execute(
        "SELECT count(*), total(p_fpops) FROM host WHERE active"
    ).fetchone()
    return float(speed / number) if speed else 1e9
