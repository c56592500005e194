"""What the page and ``local-project status`` show: rows from one snapshot, and their words.

Rows are dictionaries. Times are seconds since the epoch, 0: not yet or never; sizes are bytes,
speeds operations a second, bandwidths bytes a second.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from boinc_gahp import states
from boinc_gahp.localproject.backend import programs as names, views
from boinc_gahp.localproject.hosts.hosts import behaviours_of
from boinc_gahp.localproject.server.rpc_batches import state_words
from boinc_gahp.localproject.states import (
    ERROR_WORDS,
    BatchState,
    Outcome,
    ServerState,
    ValidateState,
)
from boinc_gahp.localproject.store import directory_of
from boinc_gahp.templates.documents import WorkunitDocument, read_workunit
from boinc_gahp.templates.types import TemplateError
from boinc_gahp.text import amount, show, size, span, visible

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core

    #: A row, with what was calculated.
    Shown = dict[str, Any]

BATCHES_A_PAGE = 50
JOBS_A_PAGE = 100

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


def batch(connection: sqlite3.Connection, batch_id: int) -> Shown | None:
    """Return a batch; 0 means the jobs that belong to none, which have no state."""
    if batch_id == 0:
        jobs = _counts(connection, "w.batch = 0")
        return {"id": 0, "name": "Jobs without a batch", "jobs": jobs}
    row = connection.execute(f"{_BATCH} WHERE b.id = ?", (batch_id,)).fetchone()
    return None if row is None else _batch(connection, row)


def overview(connection: sqlite3.Connection, page: int) -> Shown:
    """Return the ``page``-th page (from 1) of the batches that are not retired, the newest first.

    ``totals`` counts the jobs of all these batches, and of none.
    """
    rows = connection.execute(
        f"{_BATCH} WHERE b.state != ? ORDER BY b.id DESC LIMIT ? OFFSET ?",
        (BatchState.RETIRED, BATCHES_A_PAGE, (page - 1) * BATCHES_A_PAGE),
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


def jobs(connection: sqlite3.Connection, batch_id: int, page: int) -> list[Shown]:
    """Return the ``page``-th page (from 1) of a batch's jobs.

    ``last`` is the canonical instance, or else the last that a host got.
    """
    found = connection.execute(
        f"SELECT w.id, w.name, w.canonical_resultid, w.error_mask, {_STATE} AS state "  # noqa: S608
        "FROM workunit w WHERE w.batch = ? ORDER BY w.id LIMIT ? OFFSET ?",
        (batch_id, JOBS_A_PAGE, (page - 1) * JOBS_A_PAGE),
    ).fetchall()
    return [_job_line(connection, row) for row in found]


def _job_line(connection: sqlite3.Connection, row: sqlite3.Row) -> Shown:
    results = connection.execute(
        "SELECT r.id, r.outcome, r.exit_status, r.elapsed_time, r.received_time, "
        "h.domain_name AS host FROM result r LEFT JOIN host h ON h.id = r.hostid "
        "WHERE r.workunitid = ? ORDER BY r.id = ?, r.id",
        (row["id"], row["canonical_resultid"]),
    ).fetchall()
    return {
        **dict(row),
        "instances": len(results),
        "exit_statuses": [
            each["exit_status"] for each in results if each["outcome"] == Outcome.CLIENT_ERROR
        ],
        "last": next((each for each in reversed(results) if each["host"]), None),
    }


def job(core: Core, connection: sqlite3.Connection, job_id: int) -> Shown | None:
    """Return a job with its input files and its instances, oldest first."""
    row = connection.execute(
        f"SELECT w.*, {_STATE} AS state, b.name AS batch_name, u.name AS user_name, a.name AS app "  # noqa: S608
        "FROM workunit w LEFT JOIN batch b ON b.id = w.batch LEFT JOIN user u ON u.id = b.user_id "
        "LEFT JOIN app a ON a.id = w.appid WHERE w.id = ?",
        (job_id,),
    ).fetchone()
    if row is None:
        return None
    try:
        document = read_workunit(row["xml_doc"])
    except TemplateError:
        document = WorkunitDocument((), "")
    results = connection.execute(
        "SELECT r.*, coalesce(h.domain_name, '') AS host FROM result r "
        "LEFT JOIN host h ON h.id = r.hostid WHERE r.workunitid = ? ORDER BY r.id",
        (job_id,),
    ).fetchall()
    return {
        **dict(row),
        "command_line": document.command_line,
        "inputs": [
            (file, core.download.exists(file.name), directory_of(file.name))
            for file in document.files
        ],
        "instances": [_instance(core, result, row["canonical_resultid"]) for result in results],
    }


#: How the page shows an instance.
_KINDS = {Outcome.INIT: "queued", Outcome.SUCCESS: "done", Outcome.DIDNT_NEED: "aborted"}


def _kind(result: sqlite3.Row) -> str:
    if result["server_state"] != ServerState.OVER:
        return "in_progress" if result["server_state"] == ServerState.IN_PROGRESS else "queued"
    if result["validate_state"] == ValidateState.INVALID:
        return "failed"
    return _KINDS.get(Outcome(result["outcome"]), "failed")


def _instance(core: Core, result: sqlite3.Row, canonical: int) -> Shown:
    it = views.instance(core, result)
    return {
        **dict(result),
        "state": state_words(result),
        "kind": _kind(result),
        "canonical": result["id"] == canonical,
        "message": _between(result["stderr_out"], "message"),
        "stderr": _between(result["stderr_out"], "stderr_txt"),
        "files": it.files,
        "problem": it.problem,
    }


def _between(text: str, tag: str) -> str:
    """Return what the client put between two tags around the app's stderr, or its message."""
    _, begin, rest = text.partition(f"<{tag}>\n")
    return rest.rpartition(f"</{tag}>")[0].strip("\n") if begin else ""


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
    return [{"name": name, **none, **rows.get(name, {})} for name in names.PROGRAMS]


_YEAR_2100 = 4_102_444_800


def duration(seconds: float) -> str:
    """Return a time span: ``0.25 s``, ``3 min``, ``2 days``."""
    return f"{seconds:.2g} s" if seconds < 10 else span(seconds)


def ago(then: float) -> str:
    """Return how far a time is from now: ``just now``, ``3 min ago``, ``in 2 h``."""
    away = time.time() - then
    if abs(away) < 2:
        return "just now"
    return f"{span(away)} ago" if away > 0 else f"in {span(-away)}"


def lasting(since: float) -> str:
    """Return how long it has been going on: ``1 s``, ``3 min``."""
    return span(max(time.time() - since, 1))


def clock(then: float) -> str:
    """Return a time of this machine's clock: ``2026-03-01 14:05:09``."""
    return _local(then).strftime("%Y-%m-%d %H:%M:%S")


def iso(then: float) -> str:
    """Return a time in the format of ``<time datetime>``."""
    return _local(then).isoformat(timespec="seconds")


def _local(then: float) -> datetime:
    return datetime.fromtimestamp(min(max(then, 0), _YEAR_2100), timezone.utc).astimezone()


def speed(flops: float) -> str:
    """Return a number of operations a second in words."""
    return amount(flops, "FLOPS")


def credit(granted: float) -> str:
    """Return credit in words: two decimals, or a single digit if it is less than 0.01."""
    return f"{granted:,.2f}" if granted >= 0.01 or not granted else f"{granted:.1g}"


def thousands(number: float) -> str:
    """Return a whole number with separators: ``10,000``."""
    return f"{number:,.0f}"


def errors(mask: int) -> str:
    """Return the meaning of the bits of an error mask; empty for 0."""
    return ", ".join(states.ERROR_MEANINGS[word] for bit, word in ERROR_WORDS.items() if mask & bit)


def job_state(state: str) -> str:
    """Return the name of one of the states in :data:`.queries.STATES`."""
    return states.JobState[state.upper()].value


def batch_state(state: BatchState) -> str:
    """Return the name of a batch's state."""
    return states.BatchState[state.name].words


def readable(text: str) -> str:
    """Return text that a page can contain, line by line."""
    return visible(text, lambda character: character if character in "\n\t" else show(character))


FILTERS = {
    function.__name__: function
    for function in (
        duration,
        ago,
        lasting,
        clock,
        iso,
        size,
        credit,
        thousands,
        errors,
        job_state,
        batch_state,
        readable,
    )
}
