"""The scheduler: assigns results to hosts and takes reports (``back-end.rst``, "Scheduler").

A result goes to a host only if the host works now, has the memory, the disk space and (if the job
bounds it) the bandwidth, has a container engine if the app needs one, is expected to finish within
delay_bound (``templates.rst``), has had no other result of the workunit, and is among the targets
of an assigned workunit. Results of workunits assigned to the host come first; then higher priority
goes before lower, and older before newer.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from boinc_gahp.localproject import buda
from boinc_gahp.localproject.hosts import hosts
from boinc_gahp.localproject.hosts.engine import BUDA, CONTAINERS
from boinc_gahp.localproject.states import ErrorMask, Outcome, ServerState, ValidateState

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from boinc_gahp.localproject.core import Core

#: The oldest core client with containers, by BOINC's number (``containers.rst``, "The client").
_MIN_CLIENT = 80200
#: The most results that one request gives up.
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Task:
    """A result that a host is to compute.

    Attributes:
        command: the app's, before it is filled in.
        time_limit: seconds; memory_bound and disk_bound are in bytes.
        deadline: when the report is due, seconds since the epoch.
        behaviours: how the host misbehaves with it: kinds and values of ``hosts.KINDS``.
        in_container: whether the command is that of BOINC's docker_wrapper.
    """

    result_id: int
    result_name: str
    command: tuple[str, ...]
    xml_doc: str
    xml_doc_in: str
    time_limit: float
    memory_bound: float = math.inf
    disk_bound: float = math.inf
    deadline: float = 0.0
    behaviours: Mapping[str, float] = field(default_factory=dict)
    in_container: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A host's report about a result: times in seconds, ``xml_doc_out`` lists its uploads."""

    outcome: Outcome
    exit_status: int
    elapsed_time: float
    cpu_time: float
    stderr_out: str
    xml_doc_out: str = ""


class Scheduler:
    """Hands out results; all hosts share one scheduler."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def all_unfinished(self, host_id: int) -> list[Task]:
        """Return the results that a host had when the project was stopped, except vanished ones."""
        connection = self._core.db.connection()
        rows = connection.execute(
            f"{_SELECT} WHERE r.hostid = h.id AND r.server_state = :state "
            "AND r.behaviour NOT LIKE '%vanish%' ORDER BY r.id",
            {"host": host_id, "state": ServerState.IN_PROGRESS},
        ).fetchall()
        return [
            self._with_files(
                _task(row, version, row["report_deadline"], row["behaviour"]), row["p_fpops"]
            )
            for row in rows
            if _is_delivered(row["xml_doc_in"])
            and (version := _version(connection, row)) is not None
        ]

    def request_work(self, host_id: int, now: float) -> Task | None:
        """Give the host a result and mark it IN_PROGRESS; None if there is none for it.

        If the host gets nothing, results that no host of this run can have because of its bounds
        become OVER / COULDNT_SEND: a real server gives them up when enough hosts have asked in
        vain, and here all hosts are known. As long as a host that could have one is only busy, it
        waits, and so does a result for which only a container engine is missing. A result without
        an app version is given up at once.
        """
        connection = self._core.db.connection()
        hopeless = []
        if self._choose(connection, host_id) is None:
            hopeless = _hopeless(connection, host_id)
            if not hopeless:
                return None
        with self._core.db.write() as writing:
            _could_not_send(writing, hopeless, now)
            for _ in range(_AT_ONCE):
                chosen = self._choose(writing, host_id)
                if chosen is None:
                    break
                row = writing.execute(
                    f"{_SELECT} WHERE r.id = :id", {"host": host_id, "id": chosen["id"]}
                ).fetchone()
                version = _version(writing, row)
                if version is None:
                    _could_not_send(writing, [row["id"]], now)
                    continue
                task = _send(writing, row, host_id, version, now)
                if _is_delivered(row["xml_doc_in"]):
                    return self._with_files(task, row["p_fpops"])
        return None

    def report(self, host_id: int, task: Task, report: Report, now: float) -> None:
        """Take a host's report; a report after the deadline still counts.

        CLIENT_DETACHED is what BOINC records for all results of a host that attaches anew; it is
        not an error, so another result is made.

        As in BOINC, what the report says about uploaded files is only recorded; the validator,
        which uses the files, checks whether it fits them.
        """
        with self._core.db.write() as connection:
            result = connection.execute(
                "SELECT * FROM result WHERE id = ? AND hostid = ?", (task.result_id, host_id)
            ).fetchone()
            if result is None:
                return
            late = result["outcome"] == Outcome.NO_REPLY
            if result["server_state"] != ServerState.IN_PROGRESS and not late:
                return
            failed = report.outcome is Outcome.CLIENT_ERROR
            connection.execute(
                "UPDATE result SET server_state = ?, outcome = ?, validate_state = ?, "
                "exit_status = ?, elapsed_time = ?, cpu_time = ?, stderr_out = ?, "
                "xml_doc_out = ?, received_time = ? WHERE id = ?",
                (
                    ServerState.OVER,
                    report.outcome,
                    ValidateState.INVALID if failed else ValidateState.INIT,
                    report.exit_status,
                    report.elapsed_time,
                    report.cpu_time,
                    report.stderr_out,
                    report.xml_doc_out,
                    now,
                    task.result_id,
                ),
            )
            connection.execute(
                "UPDATE workunit SET transition_time = ?, mod_time = clock() WHERE id = ?",
                (now, result["workunitid"]),
            )
            connection.execute("UPDATE host SET rpc_time = ? WHERE id = ?", (now, host_id))
        self._core.wake.ring()

    def is_cancelled(self, result_id: int) -> bool:
        """Whether the project no longer wants a result that a host has."""
        row = (
            self._core.db.connection()
            .execute(
                "SELECT 1 FROM result r JOIN workunit w ON w.id = r.workunitid WHERE r.id = ? "
                "AND w.error_mask & ?",
                (result_id, ErrorMask.CANCELLED),
            )
            .fetchone()
        )
        return row is not None

    def _with_files(self, task: Task, flops: float) -> Task:
        """Return a task with the files of its BUDA app, if it is for one."""
        document = buda.with_variant(self._core.directory, task.xml_doc, flops)
        return replace(task, xml_doc=document)

    def _choose(self, connection: sqlite3.Connection, host_id: int) -> sqlite3.Row | None:
        """Return the next result for the host."""
        apps = json.dumps(buda.elements_that_can_run(self._core.directory))
        return _first(connection, host_id, _ASSIGNED, apps) or _first(
            connection, host_id, _UNSENT, apps
        )


def _is_delivered(document: str) -> bool:
    """Tell whether a result's document has a newline after <result>.

    The scheduler puts elements behind it. Without it, it marks the result as sent, and never
    delivers it.
    """
    return "<result>\n" in document or "<result>" not in document


def _send(
    connection: sqlite3.Connection, row: sqlite3.Row, host_id: int, version: sqlite3.Row, now: float
) -> Task:
    deadline = now + row["delay_bound"]
    wrong = hosts.take_behaviours(connection, host_id, row["name_key"])
    connection.execute(
        "UPDATE result SET server_state = ?, hostid = ?, userid = ?, sent_time = ?, "
        "report_deadline = ?, behaviour = ? WHERE id = ?",
        (ServerState.IN_PROGRESS, host_id, row["owner"], now, deadline, wrong, row["id"]),
    )
    connection.execute(
        "UPDATE workunit SET transition_time = min(transition_time, ?), mod_time = clock() "
        "WHERE id = ?",
        (deadline, row["workunitid"]),
    )
    connection.execute("UPDATE host SET rpc_time = ? WHERE id = ?", (now, host_id))
    return _task(row, version, deadline, wrong)


def _has_room(host: str) -> str:
    """Return the condition that a workunit ``w`` is within the capacity of a working host."""
    return (
        f"({host}.active AND {host}.p_fpops > 0 AND w.rsc_memory_bound <= {host}.m_nbytes "
        f"AND w.rsc_disk_bound <= {host}.d_free AND w.rsc_bandwidth_bound <= {host}.n_bwdown "
        f"AND w.rsc_fpops_est <= w.delay_bound * {host}.p_fpops)"
    )


def _fits(host: str) -> str:
    """Return the condition that a host has room for a workunit ``w``, and can run its app ``a``.

    A container app needs an engine and a core client of 8.2 or later.
    """
    return (
        f"({_has_room(host)} AND ((coalesce({host}.docker_version, '') != '' "  # noqa: S608
        f"AND NOT {host}.dont_use_docker AND {host}.core_client_version >= {_MIN_CLIENT}) "
        "OR NOT EXISTS (SELECT 1 FROM app_version v WHERE v.appid = a.id "
        f"AND instr(v.plan_class, '{CONTAINERS}'))))"
    )


def _target(host: str) -> str:
    """Return the condition that a workunit ``w`` is assigned to nobody, or to a host."""
    return (
        "(NOT EXISTS (SELECT 1 FROM assignment g WHERE g.workunitid = w.id) "  # noqa: S608
        "OR EXISTS (SELECT 1 FROM assignment g WHERE g.workunitid = w.id "
        f"AND (g.target_type, g.target_id) IN ((1, {host}.id), (2, {host}.userid))))"
    )


def _had(host: str, outcomes: str = "") -> str:
    """Return the condition that a host has, or had, a result of the workunit ``w``."""
    return (
        "EXISTS (SELECT 1 FROM result t WHERE t.workunitid = w.id "  # noqa: S608
        f"AND t.hostid = {host}.id{outcomes})"
    )


#: It is computing one, or has returned one that did not fail.
_GOOD = f" AND t.outcome IN ({Outcome.INIT:d}, {Outcome.SUCCESS:d})"

# A host has only one result of a workunit. After a failure (or silence), any other host that could
# have it goes first; after all have failed, one may try again: BOINC would wait for a new host to
# attach, but here there are no other hosts, and a project with one host would never finish.
_MAY_HAVE = (
    f"(NOT {_had('h')} OR (NOT {_had('h', _GOOD)} AND NOT EXISTS ("  # noqa: S608
    f"SELECT 1 FROM host o WHERE {_fits('o')} AND {_target('o')} AND NOT {_had('o')})))"
)

#: As in BOINC, a job whose BUDA app has no variant for the host, or does not exist, waits.
_HAS_VARIANT = (
    f"(a.name != '{BUDA}' OR EXISTS (SELECT 1 FROM json_each(:buda_apps) b "  # noqa: S608
    "WHERE instr(w.xml_doc, b.value)))"
)

# The joins are crossed so that SQLite goes through the unsent results in the order of their index,
# and stops at the first that fits. It only uses columns that are in the indexes.
_UNSENT = "CROSS JOIN result r INDEXED BY res_unsent"
_ASSIGNED = (
    "CROSS JOIN assignment g ON (g.target_type, g.target_id) IN ((1, h.id), (2, h.userid)) "
    "CROSS JOIN result r ON r.workunitid = g.workunitid"
)
_ORDER = "ORDER BY r.priority DESC, r.id"

_SELECT = (
    "SELECT r.id, r.name, r.workunitid, r.appid, r.app_version_num, r.xml_doc_in, "
    "r.report_deadline, r.behaviour, w.xml_doc, w.name_key, w.delay_bound, w.rsc_fpops_bound, "
    "w.rsc_memory_bound, w.rsc_disk_bound, h.p_fpops, h.userid AS owner "
    "FROM result r JOIN workunit w ON w.id = r.workunitid JOIN host h ON h.id = :host"
)


def _unsent(columns: str, source: str, where: str) -> str:
    return (
        f"SELECT {columns} FROM host h {source} "  # noqa: S608
        "CROSS JOIN workunit w INDEXED BY wu_bounds ON w.id = r.workunitid "
        f"CROSS JOIN app a ON a.id = r.appid WHERE h.id = :host "
        f"AND r.server_state = {ServerState.UNSENT:d} AND {where} {_ORDER} "
    )


def _first(
    connection: sqlite3.Connection, host_id: int, source: str, buda_apps: str
) -> sqlite3.Row | None:
    """Return the first unsent result that a host may have.

    ``buda_apps``: the elements of jobs whose BUDA apps have a variant for it, as a JSON array.
    """
    allowed = f"{_fits('h')} AND {_target('h')} AND {_MAY_HAVE} AND {_HAS_VARIANT}"
    row: sqlite3.Row | None = connection.execute(
        f"{_unsent('r.id', source, allowed)} LIMIT 1", {"host": host_id, "buda_apps": buda_apps}
    ).fetchone()
    return row


def _hopeless(connection: sqlite3.Connection, host_id: int) -> list[int]:
    """Return the results that neither this host nor another can have."""
    nobody = (
        f"NOT {_has_room('h')} AND NOT EXISTS (SELECT 1 FROM host o "  # noqa: S608
        f"WHERE {_has_room('o')} AND {_target('o')} AND NOT {_had('o', _GOOD)})"
    )
    query = f"{_unsent('r.id', _UNSENT, nobody)} LIMIT {_AT_ONCE}"
    return [row["id"] for row in connection.execute(query, {"host": host_id})]


def _could_not_send(connection: sqlite3.Connection, ids: Iterable[int], now: float) -> None:
    for result_id in ids:
        connection.execute(
            "UPDATE result SET server_state = ?, outcome = ? WHERE id = ? AND server_state = ?",
            (ServerState.OVER, Outcome.COULDNT_SEND, result_id, ServerState.UNSENT),
        )
        connection.execute(
            "UPDATE workunit SET transition_time = ?, mod_time = clock() "
            "WHERE id = (SELECT workunitid FROM result WHERE id = ?)",
            (now, result_id),
        )


def _version(connection: sqlite3.Connection, row: sqlite3.Row) -> sqlite3.Row | None:
    """Return the app version that a result names, or the newest."""
    wanted = row["app_version_num"]
    found: sqlite3.Row | None = connection.execute(
        "SELECT command, plan_class FROM app_version "
        "WHERE appid = ? AND (version_num = ? OR ? = 0) "
        "ORDER BY version_num DESC LIMIT 1",
        (row["appid"], wanted, wanted),
    ).fetchone()
    return found


def _task(row: sqlite3.Row, version: sqlite3.Row, deadline: float, wrong: str) -> Task:
    return Task(
        result_id=row["id"],
        result_name=row["name"],
        command=tuple(json.loads(version["command"])),
        xml_doc=row["xml_doc"],
        xml_doc_in=row["xml_doc_in"],
        time_limit=row["rsc_fpops_bound"] / row["p_fpops"] if row["p_fpops"] else math.inf,
        memory_bound=row["rsc_memory_bound"],
        disk_bound=row["rsc_disk_bound"],
        deadline=deadline,
        behaviours=hosts.read_behaviours(wrong),
        in_container=CONTAINERS in version["plan_class"],
    )
