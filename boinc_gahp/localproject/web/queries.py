"""What the pages about batches, hosts, apps and back-end programs show, read from one snapshot."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend import programs as names
from boinc_gahp.localproject.hosts import behaviour
from boinc_gahp.localproject.hosts.engine import container_apps
from boinc_gahp.localproject.states import BatchState, ErrorMask, ServerState

if TYPE_CHECKING:
    import sqlite3

    from boinc_gahp.localproject.hosts.behaviour import Behaviour

BATCHES_A_PAGE = 50

#: The states of a job for people, in the order in which they are shown. A job is in progress while
#: some host has an instance of it. One that was aborted has failed, as for a project.
STATES = ("queued", "in_progress", "done", "failed")

_OPEN = "w.canonical_resultid = 0 AND w.error_mask = 0"
_IN_PROGRESS = (
    "EXISTS (SELECT 1 FROM result r WHERE r.workunitid = w.id "  # noqa: S608
    f"AND r.server_state = {ServerState.IN_PROGRESS:d})"
)
_CANCELLED = f"w.error_mask & {ErrorMask.CANCELLED:d}"
#: The condition for a job in each state.
WHERE = {
    "queued": f"{_OPEN} AND NOT {_IN_PROGRESS}",
    "in_progress": f"{_OPEN} AND {_IN_PROGRESS}",
    "done": "w.canonical_resultid != 0",
    "failed": "w.canonical_resultid = 0 AND w.error_mask != 0",
}


@dataclass(slots=True)
class StateCounts:
    """The number of jobs in each of :data:`STATES`, and how many of the failed were aborted."""

    queued: int = 0
    in_progress: int = 0
    done: int = 0
    failed: int = 0
    aborted: int = 0

    @property
    def total(self) -> int:
        """All jobs."""
        return self.ended + self.queued + self.in_progress

    @property
    def ended(self) -> int:
        """The jobs that are neither queued nor in progress."""
        return self.done + self.failed

    @property
    def percent(self) -> int:
        """The percentage that has ended, rounded down: 100 only if all have."""
        return 100 * self.ended // self.total if self.total else 0

    def parts(self) -> list[tuple[str, int, float, float]]:
        """Return state, number, start and length in a bar of 100."""
        parts = []
        begin = 0.0
        for state in ("done", "failed", "in_progress", "queued"):
            number = getattr(self, state)
            if number:
                length = 100 * number / self.total
                parts.append((state, number, begin, length))
                begin += length
        return parts

    def __iadd__(self, other: StateCounts) -> StateCounts:
        for state in (*STATES, "aborted"):
            setattr(self, state, getattr(self, state) + getattr(other, state))
        return self


def counts(connection: sqlite3.Connection, batch_id: int | None = None) -> dict[int, StateCounts]:
    """Count the jobs of a batch, or of all batches, by batch."""
    where, parameters = ("", ()) if batch_id is None else ("WHERE w.batch = ?", (batch_id,))
    found = {
        row["batch"]: StateCounts(
            queued=row["jobs"] - row["done"] - row["failed"],
            done=row["done"],
            failed=row["failed"],
            aborted=row["aborted"],
        )
        for row in connection.execute(
            "SELECT w.batch, count(*) AS jobs, sum(w.canonical_resultid != 0) AS done, "  # noqa: S608
            f"sum({WHERE['failed']}) AS failed, sum({WHERE['failed']} AND {_CANCELLED}) AS aborted "
            f"FROM workunit w {where} GROUP BY w.batch",
            parameters,
        )
    }
    # Goes from the few results that hosts have to their jobs, not from all jobs to their results.
    for row in connection.execute(
        "SELECT w.batch, count(DISTINCT w.id) AS in_progress "  # noqa: S608
        "FROM result r INDEXED BY res_host CROSS JOIN workunit w ON w.id = r.workunitid "
        f"WHERE r.server_state = {ServerState.IN_PROGRESS:d} AND {_OPEN} GROUP BY w.batch"
    ):
        if row["batch"] in found:
            found[row["batch"]].in_progress = row["in_progress"]
            found[row["batch"]].queued -= row["in_progress"]
    return found


@dataclass(slots=True)
class ShownBatch:
    """A batch, or the jobs that belong to none; those have no state.

    Times are seconds since the epoch; 0: not yet, or never. ``completion_time`` is the project's
    record: when an RPC first found all jobs ended, or when the batch was aborted.
    """

    id: int
    name: str
    state: BatchState | None
    user_id: int
    user: str
    app_id: int
    app: str
    create_time: float
    completion_time: float
    expire_time: float
    credit: float
    jobs: StateCounts = field(default_factory=StateCounts)

    @property
    def open(self) -> bool:
        """Whether there is anything left to abort."""
        return self.state in (BatchState.INIT, BatchState.IN_PROGRESS)


_BATCH = (
    "SELECT b.*, u.name AS user_name, a.name AS app_name FROM batch b "
    "LEFT JOIN user u ON u.id = b.user_id LEFT JOIN app a ON a.id = b.app_id"
)


def _batch(row: sqlite3.Row, jobs: StateCounts) -> ShownBatch:
    state = BatchState(row["state"])
    if state is BatchState.IN_PROGRESS and 0 < jobs.total == jobs.ended:
        # As query_batch does; only query_batch stores it.
        state = BatchState.COMPLETE
    return ShownBatch(
        id=row["id"],
        name=row["name"],
        state=state,
        user_id=row["user_id"],
        user=row["user_name"] or "",
        app_id=row["app_id"],
        app=row["app_name"] or "",
        create_time=row["create_time"],
        completion_time=row["completion_time"],
        expire_time=row["expire_time"],
        credit=row["credit_canonical"],
        jobs=jobs,
    )


def batch(connection: sqlite3.Connection, batch_id: int) -> ShownBatch | None:
    """Return a batch; 0 means the jobs that belong to none."""
    jobs = counts(connection, batch_id).get(batch_id, StateCounts())
    if batch_id == 0:
        return ShownBatch(0, "Jobs without a batch", None, 0, "", 0, "", 0, 0, 0, 0, jobs)
    row = connection.execute(f"{_BATCH} WHERE b.id = ?", (batch_id,)).fetchone()
    if row is None:
        return None
    found = _batch(row, jobs)
    (found.credit,) = connection.execute(
        "SELECT total(canonical_credit) FROM workunit WHERE batch = ?", (batch_id,)
    ).fetchone()
    return found


@dataclass(frozen=True, slots=True)
class BatchesPage:
    """A page of batches, newest first, and the jobs of all that are not retired."""

    batches: list[ShownBatch]
    number: int
    retired: int
    totals: StateCounts
    without_batch: StateCounts


def overview(connection: sqlite3.Connection, page: int, *, retired: bool) -> BatchesPage:
    """Return the ``page``-th page (from 1) of the retired batches, or of all others."""
    by_batch = counts(connection)
    sign = "=" if retired else "!="
    rows = connection.execute(
        f"{_BATCH} WHERE b.state {sign} ? ORDER BY b.id DESC LIMIT ? OFFSET ?",
        (BatchState.RETIRED, BATCHES_A_PAGE, (page - 1) * BATCHES_A_PAGE),
    ).fetchall()
    gone = {
        row["id"]
        for row in connection.execute("SELECT id FROM batch WHERE state = ?", (BatchState.RETIRED,))
    }
    (every,) = connection.execute("SELECT count(*) FROM batch").fetchone()
    totals = StateCounts()
    for batch_id, jobs in by_batch.items():
        if batch_id not in gone:
            totals += jobs
    return BatchesPage(
        batches=[_batch(row, by_batch.get(row["id"], StateCounts())) for row in rows],
        number=len(gone) if retired else every - len(gone),
        retired=len(gone),
        totals=totals,
        without_batch=by_batch.get(0, StateCounts()),
    )


@dataclass(frozen=True, slots=True)
class Running:
    """A result that a host has."""

    result_id: int
    name: str
    job_id: int
    sent_time: float
    report_deadline: float


@dataclass(frozen=True, slots=True)
class Host:
    """A volunteer's host: operations a second, bytes, bytes a second.

    ``engine``: the container engine that it offers, with its version; '': none, as far as it knows.
    """

    id: int
    name: str
    speed: float
    memory: float
    disk: float
    bandwidth: float
    rpc_time: float
    credit: float
    running: list[Running]
    behaviours: list[Behaviour]
    active: bool
    engine: str


def hosts(connection: sqlite3.Connection) -> list[Host]:
    """Return all hosts, the working ones first."""
    running: dict[int, list[Running]] = {}
    for row in connection.execute(
        "SELECT r.id, r.hostid, r.name, r.workunitid, r.sent_time, r.report_deadline FROM result r "  # noqa: S608
        f"WHERE r.server_state = {ServerState.IN_PROGRESS:d} ORDER BY r.sent_time, r.id"
    ):
        running.setdefault(row["hostid"], []).append(
            Running(
                row["id"], row["name"], row["workunitid"], row["sent_time"], row["report_deadline"]
            )
        )
    return [
        Host(
            id=row["id"],
            name=row["domain_name"],
            speed=row["p_fpops"],
            memory=row["m_nbytes"],
            disk=row["d_free"],
            bandwidth=row["n_bwdown"],
            rpc_time=row["rpc_time"],
            credit=row["total_credit"],
            running=running.get(row["id"], []),
            active=bool(row["active"]),
            behaviours=behaviour.of_host(connection, row["id"]),
            engine="" if row["dont_use_docker"] else row["docker_version"] or "",
        )
        for row in connection.execute("SELECT * FROM host ORDER BY active DESC, id").fetchall()
    ]


@dataclass(frozen=True, slots=True)
class ShownProgram:
    """The work of a back-end program; ``passes`` 0: it has not run yet."""

    name: str
    does: str
    passes: int = 0
    handled: int = 0
    last_time: float = 0.0
    last_seconds: float = 0.0
    last_handled: int = 0
    error: str = ""


_DOES = {
    names.WORK_GENERATOR: "makes jobs while few are waiting",
    names.TRANSITIONER: "makes instances, handles time-outs and errors",
    names.SIZE_REGULATOR: "offers instances of each size class",
    names.VALIDATOR: "compares results, chooses the canonical one, grants credit",
    names.ASSIMILATOR: "calls the app's assimilator for finished jobs",
    names.FILE_DELETER: "removes files that are no longer needed",
    names.BATCH_EXPIRY: "ends batches that have expired",
    names.JOB_FILE_CLEANER: "removes staged files that no batch uses",
}


def programs(connection: sqlite3.Connection) -> list[ShownProgram]:
    """Return every program, also those that have not run yet."""
    rows = {row["name"]: row for row in connection.execute("SELECT * FROM program")}
    known = [*_DOES, *sorted(rows.keys() - _DOES.keys())]
    return [
        ShownProgram(does=_DOES.get(name, ""), **dict(rows.get(name, {"name": name})))
        for name in known
    ]


@dataclass(frozen=True, slots=True)
class ShownApp:
    """An app: its versions' numbers and commands, and its plug-ins."""

    id: int
    name: str
    description: str
    validator: str
    assimilator: str
    work_generator: str
    n_size_classes: int
    work_error: str
    versions: dict[int, str]
    container: bool


def apps(connection: sqlite3.Connection) -> list[ShownApp]:
    """Return the apps that are not deprecated."""
    versions: dict[int, dict[int, str]] = {}
    for row in connection.execute("SELECT * FROM app_version ORDER BY version_num DESC"):
        # The words have no quotes where they need none, not even {python}.
        words = [
            shlex.quote(each) if len(each.split()) != 1 else each
            for each in json.loads(row["command"])
        ]
        versions.setdefault(row["appid"], {})[row["version_num"]] = " ".join(words)
    in_containers = container_apps(connection)
    return [
        ShownApp(
            id=row["id"],
            name=row["name"],
            description=row["user_friendly_name"],
            validator=row["validator"],
            assimilator=row["assimilator"],
            work_generator=row["work_generator"],
            n_size_classes=row["n_size_classes"],
            work_error=row["work_error"],
            versions=versions.get(row["id"], {}),
            container=row["name"] in in_containers,
        )
        for row in connection.execute("SELECT * FROM app WHERE deprecated = 0 ORDER BY name")
    ]
