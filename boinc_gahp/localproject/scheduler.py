"""The scheduler: which result goes to which host, and what comes back (``back-end.md``)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .states import Outcome, ServerState

if TYPE_CHECKING:
    import sqlite3

    from .core import Core

#: Results looked at for one request.
_CANDIDATES = 200
#: A result refused this often for its bounds falls off ("infeasible").
_MAX_REFUSALS = 10


@dataclass(frozen=True, slots=True)
class Task:
    """A result that a host is to compute; ``command`` is the app's, before it is filled in."""

    result_id: int
    result_name: str
    command: tuple[str, ...]
    xml_doc: str
    xml_doc_in: str
    time_limit: float


@dataclass(frozen=True, slots=True)
class Report:
    """What a host says about a result: times in seconds, ``xml_doc_out`` lists its uploads."""

    outcome: Outcome
    exit_status: int
    elapsed_time: float
    cpu_time: float
    stderr_out: str
    xml_doc_out: str = ""


class Scheduler:
    """Hands out results; all hosts share one."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._refusals: Counter[int] = Counter()

    def unfinished(self, host_id: int) -> Task | None:
        """Return a result that the host had when the project was stopped."""
        row = (
            self._core.db.connection()
            .execute(
                f"{_SELECT} WHERE r.hostid = ? AND r.server_state = ? ORDER BY r.id LIMIT 1",
                (host_id, ServerState.IN_PROGRESS),
            )
            .fetchone()
        )
        return None if row is None else self._task(self._core.db.connection(), row, host_id)

    def request_work(self, host_id: int, now: float) -> Task | None:
        """Give the host a result and mark it IN_PROGRESS; None if there is none for it."""
        waiting = self._core.db.connection().execute(
            "SELECT 1 FROM result WHERE server_state = 2 LIMIT 1"
        )
        if waiting.fetchone() is None:
            return None
        with self._core.db.write() as connection:
            host = connection.execute("SELECT * FROM host WHERE id = ?", (host_id,)).fetchone()
            rows = connection.execute(
                f"{_SELECT} WHERE r.server_state = 2 ORDER BY r.priority DESC, r.id LIMIT ?",
                (_CANDIDATES,),
            ).fetchall()
            for row in rows:
                if not self._fits(connection, row, host, now):
                    continue
                if not _may_have(connection, row["workunitid"], host_id):
                    continue
                task = self._task(connection, row, host_id)
                if task is None:
                    _could_not_send(connection, row, now)
                    continue
                _send(connection, row, host, now)
                return task
        return None

    def report(self, host_id: int, task: Task, report: Report, now: float) -> None:
        """Take a host's report; one that comes after the deadline still counts."""
        with self._core.db.write() as connection:
            result = connection.execute(
                "SELECT * FROM result WHERE id = ? AND hostid = ?", (task.result_id, host_id)
            ).fetchone()
            late = result["outcome"] == Outcome.NO_REPLY
            if result["server_state"] != ServerState.IN_PROGRESS and not late:
                return
            connection.execute(
                "UPDATE result SET server_state = ?, outcome = ?, exit_status = ?, "
                "elapsed_time = ?, cpu_time = ?, stderr_out = ?, xml_doc_out = ?, "
                "received_time = ? WHERE id = ?",
                (
                    ServerState.OVER,
                    report.outcome,
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
                "UPDATE workunit SET transition_time = ?, mod_time = ? WHERE id = ?",
                (now, now, result["workunitid"]),
            )
        self._core.wake.ring()

    def _fits(
        self, connection: sqlite3.Connection, row: sqlite3.Row, host: sqlite3.Row, now: float
    ) -> bool:
        bounds = (
            ("rsc_memory_bound", "m_nbytes"),
            ("rsc_disk_bound", "d_free"),
            ("rsc_bandwidth_bound", "n_bwdown"),
        )
        if all(row[bound] <= host[have] for bound, have in bounds):
            return True
        self._refusals[row["id"]] += 1
        if self._refusals[row["id"]] >= _MAX_REFUSALS:
            _could_not_send(connection, row, now)
            del self._refusals[row["id"]]
        return False

    def _task(self, connection: sqlite3.Connection, row: sqlite3.Row, host_id: int) -> Task | None:
        wanted = row["app_version_num"]
        version = connection.execute(
            "SELECT command FROM app_version WHERE appid = ? AND (version_num = ? OR ? = 0) "
            "ORDER BY version_num DESC LIMIT 1",
            (row["appid"], wanted, wanted),
        ).fetchone()
        if version is None:
            return None
        (speed,) = connection.execute(
            "SELECT p_fpops FROM host WHERE id = ?", (host_id,)
        ).fetchone()
        return Task(
            result_id=row["id"],
            result_name=row["name"],
            command=tuple(json.loads(version["command"])),
            xml_doc=row["xml_doc"],
            xml_doc_in=row["xml_doc_in"],
            time_limit=row["rsc_fpops_bound"] / speed,
        )


_SELECT = (
    "SELECT r.id, r.name, r.workunitid, r.appid, r.app_version_num, r.xml_doc_in, w.xml_doc, "
    "w.delay_bound, w.rsc_fpops_bound, w.rsc_memory_bound, w.rsc_disk_bound, "
    "w.rsc_bandwidth_bound FROM result r JOIN workunit w ON w.id = r.workunitid"
)


def _may_have(connection: sqlite3.Connection, workunit_id: int, host_id: int) -> bool:
    """Whether a host may get a result of a workunit.

    Not two at a time, and not a second one after a success; after a failure another host goes
    first, if there is one that has not tried.
    """
    tried: dict[int, bool] = {}
    for row in connection.execute(
        "SELECT hostid, outcome FROM result WHERE workunitid = ? AND hostid != 0", (workunit_id,)
    ):
        failed = row["outcome"] not in (Outcome.INIT, Outcome.SUCCESS)
        tried[row["hostid"]] = tried.get(row["hostid"], True) and failed
    if host_id not in tried:
        return True
    (hosts,) = connection.execute("SELECT count(*) FROM host WHERE p_fpops > 0").fetchone()
    return tried[host_id] and len(tried) >= hosts


def _could_not_send(connection: sqlite3.Connection, row: sqlite3.Row, now: float) -> None:
    connection.execute(
        "UPDATE result SET server_state = ?, outcome = ? WHERE id = ?",
        (ServerState.OVER, Outcome.COULDNT_SEND, row["id"]),
    )
    connection.execute(
        "UPDATE workunit SET transition_time = ?, mod_time = ? WHERE id = ?",
        (now, now, row["workunitid"]),
    )


def _send(connection: sqlite3.Connection, row: sqlite3.Row, host: sqlite3.Row, now: float) -> None:
    deadline = now + row["delay_bound"]
    connection.execute(
        "UPDATE result SET server_state = ?, hostid = ?, userid = ?, sent_time = ?, "
        "report_deadline = ? WHERE id = ?",
        (ServerState.IN_PROGRESS, host["id"], host["userid"], now, deadline, row["id"]),
    )
    connection.execute(
        "UPDATE workunit SET transition_time = min(transition_time, ?), mod_time = ? WHERE id = ?",
        (deadline, now, row["workunitid"]),
    )
    connection.execute("UPDATE host SET rpc_time = ? WHERE id = ?", (now, host["id"]))
