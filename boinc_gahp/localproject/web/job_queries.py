"""What the page of a batch shows about its jobs, and the page of a job about its instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree

from boinc_gahp.localproject.backend import views
from boinc_gahp.localproject.backend.outputs import UploadedFile, uploaded_files
from boinc_gahp.localproject.hosts import behaviour
from boinc_gahp.localproject.server.rpc_jobs import state_words
from boinc_gahp.localproject.states import Outcome, ServerState, ValidateState
from boinc_gahp.localproject.web.history import history
from boinc_gahp.localproject.web.queries import STATES, WHERE
from boinc_gahp.templates.documents import WorkunitDocument, read_workunit
from boinc_gahp.templates.types import TemplateError

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.core import Core
    from boinc_gahp.localproject.hosts.behaviour import Behaviour
    from boinc_gahp.localproject.web.history import Event
    from boinc_gahp.templates.documents import WorkunitFile

JOBS_A_PAGE = 100


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job in a batch's list. ``results``: its instances, oldest first."""

    id: int
    name: str
    state: str
    error_mask: int
    canonical: int
    results: list[sqlite3.Row]

    @property
    def elapsed_time(self) -> float:
        """How long the canonical instance ran, or else the last to come back, in seconds."""
        over = [row["elapsed_time"] for row in self.results if row["elapsed_time"]]
        return over[-1] if over else 0.0

    @property
    def end_time(self) -> float:
        """When the result was received that ended it; 0: not yet, or this is not known."""
        received: dict[int, float] = {row["id"]: row["received_time"] for row in self.results}
        if self.state == "failed":
            return max(received.values(), default=0.0)
        return received.get(self.canonical, 0.0)

    @property
    def exit_statuses(self) -> list[int]:
        """The exit statuses of failed instances."""
        return [
            row["exit_status"] for row in self.results if row["outcome"] == Outcome.CLIENT_ERROR
        ]

    @property
    def hosts(self) -> list[str]:
        """The hosts that have it now, or else the one that had it last."""
        now = [
            row["host"] for row in self.results if row["server_state"] == ServerState.IN_PROGRESS
        ]
        had = [row["host"] for row in self.results if row["host"]]
        return now or had[-1:]


def _state(job: sqlite3.Row, results: list[sqlite3.Row]) -> str:
    if job["canonical_resultid"]:
        return "done"
    if job["error_mask"]:
        return "failed"
    busy = any(row["server_state"] == ServerState.IN_PROGRESS for row in results)
    return "in_progress" if busy else "queued"


def jobs(
    connection: sqlite3.Connection, batch_id: int, page: int, *, state: str, part: str
) -> tuple[list[JobLine], int]:
    """Return the ``page``-th page (from 1) of a batch's jobs, and the number of jobs.

    Only those in ``state``, if it is one of STATES, and with ``part`` in their names.
    """
    where, parameters = "w.batch = ?", [batch_id]
    filters: list[object] = [*parameters]
    if state in STATES:
        where += f" AND {WHERE[state]}"
    if part:
        where += " AND instr(lower(w.name), lower(?))"
        filters.append(part)
    (number,) = connection.execute(
        f"SELECT count(*) FROM workunit w WHERE {where}",  # noqa: S608
        filters,
    ).fetchone()
    found = connection.execute(
        "SELECT w.id, w.name, w.canonical_resultid, w.error_mask FROM workunit w "  # noqa: S608
        f"WHERE {where} ORDER BY w.id LIMIT ? OFFSET ?",
        (*filters, JOBS_A_PAGE, (page - 1) * JOBS_A_PAGE),
    ).fetchall()
    results: dict[int, list[sqlite3.Row]] = {job["id"]: [] for job in found}
    for row in connection.execute(
        "SELECT r.id, r.workunitid, r.server_state, r.outcome, r.exit_status, "  # noqa: S608
        "r.elapsed_time, r.received_time, h.domain_name AS host "
        "FROM result r LEFT JOIN host h ON h.id = r.hostid "
        f"WHERE r.workunitid IN ({', '.join('?' * len(results))}) ORDER BY r.id",
        list(results),
    ):
        results[row["workunitid"]].append(row)
    lines = [
        JobLine(
            job["id"],
            job["name"],
            _state(job, results[job["id"]]),
            job["error_mask"],
            job["canonical_resultid"],
            results[job["id"]],
        )
        for job in found
    ]
    return lines, number


@dataclass(frozen=True, slots=True)
class ShownInstance:
    """A result: as validators see it, with what the page adds.

    ``state`` is query_job's word; ``kind`` one of STATES, for its colour; ``message`` the client's
    about a failure; ``stderr`` the app's own; ``gone`` are the outputs that it had.
    """

    it: views.Result
    state: str
    kind: str
    host: str
    canonical: bool
    create_time: float
    file_delete_state: int
    message: str
    stderr: str
    gone: list[UploadedFile]

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        return _name(self.it.outcome)

    @property
    def validate_state(self) -> str:
        """The validate state in words."""
        return _name(self.it.validate_state)

    @property
    def over(self) -> bool:
        """Whether the outcome is known."""
        return self.it.server_state is ServerState.OVER


@dataclass(frozen=True, slots=True)
class ShownJob:
    """A workunit: as assimilators see it, with its row (``w.*``) for all other values.

    ``inputs``: its input files, and whether each is on this server.
    """

    it: views.Workunit
    row: sqlite3.Row
    state: str
    command_line: str
    inputs: list[tuple[WorkunitFile, bool]]
    instances: list[ShownInstance]
    history: list[Event]
    behaviours: list[Behaviour]


def job(core: Core, connection: sqlite3.Connection, job_id: int) -> ShownJob | None:
    """Return a job with its instances and what is known of its history."""
    row = connection.execute(
        "SELECT w.*, b.name AS batch_name, b.user_id, u.name AS user_name, a.name AS app "
        "FROM workunit w LEFT JOIN batch b ON b.id = w.batch LEFT JOIN user u ON u.id = b.user_id "
        "LEFT JOIN app a ON a.id = w.appid WHERE w.id = ?",
        (job_id,),
    ).fetchone()
    if row is None:
        return None
    results = connection.execute(
        "SELECT r.*, h.domain_name AS host FROM result r LEFT JOIN host h ON h.id = r.hostid "
        "WHERE r.workunitid = ? ORDER BY r.id",
        (job_id,),
    ).fetchall()
    instances = [_instance(core, result, row["canonical_resultid"]) for result in results]
    try:
        document = read_workunit(row["xml_doc"])
    except TemplateError:
        document = WorkunitDocument((), "")
    state = _state(row, results)
    return ShownJob(
        it=views.job(row, row["app"] or ""),
        row=row,
        state=state,
        command_line=document.command_line,
        inputs=[(file, core.download.exists(file.name)) for file in document.files],
        instances=instances,
        history=history(row, state, instances),
        behaviours=behaviour.of_job(connection, row["name"]),
    )


#: How the page shows an instance.
_KINDS = {
    Outcome.INIT: "queued",
    Outcome.SUCCESS: "done",
    Outcome.DIDNT_NEED: "aborted",
}


def _kind(result: sqlite3.Row) -> str:
    if result["server_state"] != ServerState.OVER:
        return "in_progress" if result["server_state"] == ServerState.IN_PROGRESS else "queued"
    if result["validate_state"] == ValidateState.INVALID:
        return "failed"
    return _KINDS.get(Outcome(result["outcome"]), "failed")


def _instance(core: Core, result: sqlite3.Row, canonical: int) -> ShownInstance:
    it = views.instance(core, result)
    return ShownInstance(
        it=it,
        state=state_words(result),
        kind=_kind(result),
        host=result["host"] or "",
        canonical=result["id"] == canonical,
        create_time=result["create_time"],
        file_delete_state=result["file_delete_state"],
        message=_between(result["stderr_out"], "message"),
        stderr=_between(result["stderr_out"], "stderr_txt"),
        gone=_gone(result, it),
    )


def _gone(result: sqlite3.Row, it: views.Result) -> list[UploadedFile]:
    """Return the reported outputs that are no longer there: their data are kept."""
    here = {file.path.name for file in it.files}
    try:
        return [file for file in uploaded_files(result) if file.name not in here]
    except (etree.XMLSyntaxError, ValueError):
        return []


def _name(value: Outcome | ValidateState) -> str:
    return "not yet" if value == 0 else value.name.lower().replace("_", " ")


def _between(text: str, tag: str) -> str:
    """Return what the client put between two tags around the app's stderr, or its message."""
    _, begin, rest = text.partition(f"<{tag}>\n")
    return rest.rpartition(f"</{tag}>")[0].strip("\n") if begin else ""
