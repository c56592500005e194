"""The volunteer hosts: the properties that they claim, which of them work now, which misbehave.

They are called ``volunteer-0``, ``volunteer-1``, … and are identical until :func:`set_host` changes
one.

A host misbehaves on request, so that people can watch how a project reacts. A behaviour is set for
a host, for a job, for a host and a job, or for all; if several of one kind apply, the job's goes
before the host's. It is stored in the database, so another process can set it while the project
runs, and it is recorded with each result that is handed out under it.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.localproject.accounts import VOLUNTEERS
from boinc_gahp.localproject.core import name_key
from boinc_gahp.localproject.states import ServerState

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boinc_gahp.localproject.core import Database


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


#: The effect of each kind, and the name of its value in brackets: '' means no value.
KINDS = {
    "fail": ("STATUS", "the app runs, then exits with STATUS"),
    "exit": ("STATUS", "the app runs well, and the host reports it with exit status STATUS"),
    "crash": ("", "the app dies by a signal in the middle of an output"),
    "vanish": ("", "the host takes a job and never reports it"),
    "detach": ("", "the host leaves the project with the job, and comes back without it"),
    "late": (
        "[SECONDS]",
        "the host reports SECONDS after the job's end, or just after its deadline",
    ),
    "differ": ("", "the host returns outputs with wrong contents"),
    "truncate": (
        "",
        "the host uploads half of an output, and reports the size and MD5 of the whole",
    ),
    "slow": ("FACTOR", "the job takes FACTOR times as long"),
}
_WORDS = re.compile(r"(?P<kind>[a-z]+?)(?:=(?P<value>[0-9.]+))?(?:x(?P<times>[0-9]+))?")

#: More than any column needs.
_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One misbehaviour of a host.

    Attributes:
        kind: one of :data:`KINDS`.
        value: exit status, seconds or factor; 0 if the kind has none.
        times: for how many results; None: for all.
    """

    kind: str
    value: float = 0.0
    times: int | None = None

    def __str__(self) -> str:
        value = f"={self.value:.10g}" if self.value else ""
        return f"{self.kind}{value}{'' if self.times is None else f'x{self.times}'}"


def behaviour_spellings() -> dict[str, str]:
    """Return how to write behaviours, and what each does."""
    return {
        kind + (value.replace("[", "[=") if value[:1] in ("", "[") else f"={value}"): does
        for kind, (value, does) in KINDS.items()
    }


def expected_behaviours() -> str:
    """Return the forms that may be written."""
    return f"{', '.join(behaviour_spellings())}; with xN at the end for N results only"


def parse_behaviour(text: str) -> Behaviour:
    """Read a behaviour: ``fail=3``, ``crash``, ``slow=2.5x10`` (for ten results).

    Raises:
        ValueError: it is not a behaviour; the text says what is expected.
    """
    match = _WORDS.fullmatch(text.strip())
    if match is None or match["kind"] not in KINDS:
        raise ValueError(f"{text!r} is not a behaviour: expected {expected_behaviours()}")
    kind, times = match["kind"], match["times"]
    try:
        value = float(match["value"] or 0)
    except ValueError:
        value = math.nan
    problem = _problem(kind, match["value"] is not None, value)
    if times is not None and not (len(times) < _DIGITS and int(times)):
        problem = "xN: expected a whole number from 1 to 999999999"
    if problem:
        raise ValueError(f"{text!r}: {problem}")
    return Behaviour(kind, value, None if times is None else int(times))


def _problem(kind: str, given: bool, value: float) -> str:
    if kind in {"fail", "exit"} and value not in range(1, 256):
        return f"expected {kind}=STATUS with a status from 1 to 255"
    if kind == "slow" and not 1 <= value <= 1e6:
        return "expected slow=FACTOR with a factor from 1 to 1000000"
    if kind == "late" and given and not 0 < value <= 1e9:
        return "expected late=SECONDS with a positive number"
    if given and not KINDS[kind][0]:
        return f"expected {kind} without a value"
    return ""


def set_behaviours(
    database: Database, behaviours: Iterable[Behaviour], *, host: str = "", job: str = ""
) -> None:
    """Set a behaviour of a host, or all, for a job, or all; it replaces the one set for these.

    A job may be named before it exists: volunteers are quick.

    Raises:
        ValueError: there is no host with that name.
    """
    with database.write() as connection:
        place = _place(connection, host, job)
        connection.execute("DELETE FROM behaviour WHERE hostid = ? AND name_key = ?", place)
        connection.executemany(
            "INSERT INTO behaviour (hostid, name_key, kind, value, times) VALUES (?, ?, ?, ?, ?)",
            [(*place, each.kind, each.value, each.times) for each in behaviours],
        )


def clear_behaviours(database: Database, *, host: str = "", job: str = "") -> None:
    """Remove what was set for a host or a job; with neither, everything set for anything.

    Raises:
        ValueError: there is no host with that name.
    """
    with database.write() as connection:
        host_id, key = _place(connection, host, job)
        connection.execute(
            "DELETE FROM behaviour WHERE (? = 0 OR hostid = ?) AND (? = '' OR name_key = ?)",
            (host_id, host_id, key, key),
        )


def behaviours_of(connection: sqlite3.Connection, host_id: int) -> list[Behaviour]:
    """Return a host's behaviour for all jobs; it includes what is set for every host."""
    rows = connection.execute(
        "SELECT * FROM behaviour WHERE hostid IN (0, ?) AND name_key = '' ORDER BY hostid, id",
        (host_id,),
    )
    last = {row["kind"]: row for row in rows}
    return [Behaviour(row["kind"], row["value"], row["times"]) for row in last.values()]


def take_behaviours(connection: sqlite3.Connection, host_id: int, key: str) -> str:
    """Return a host's behaviour for a result that it is given, and count it.

    Must run in the transaction that hands the result out. ``key`` is the workunit's ``name_key``.
    The text is for ``result.behaviour``; :func:`read_behaviours` reads it.
    """
    rows = connection.execute(
        "SELECT * FROM behaviour WHERE hostid IN (0, ?) AND name_key IN ('', ?) "
        "ORDER BY name_key, hostid, id",
        (host_id, key),
    )
    chosen = {row["kind"]: row for row in rows}
    for row in chosen.values():
        if row["times"] is not None:
            connection.execute("UPDATE behaviour SET times = times - 1 WHERE id = ?", (row["id"],))
    connection.execute("DELETE FROM behaviour WHERE times <= 0")
    return " ".join(str(Behaviour(row["kind"], row["value"])) for row in chosen.values())


def read_behaviours(text: str) -> dict[str, float]:
    """Return kinds and values from the text in ``result.behaviour``."""
    return {each.kind: each.value for each in map(parse_behaviour, text.split())}


def _place(connection: sqlite3.Connection, host: str, job: str) -> tuple[int, str]:
    return find(connection, host) if host else 0, name_key(job) if job else ""
