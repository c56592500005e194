"""The ledger's jobs, batches and projects, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from boinc_gahp.config.urls import url_identity
from boinc_gahp.errors import OutputError
from boinc_gahp.states import LEDGER_WORDS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

#: ``waiting``: accepted, not in a batch. ``sending``: in a batch, which may be on its way.
#: ``queued``: on the project, no host has it. ``running``: a host has it, or had it. ``finished``:
#: over on the project; its outputs must be fetched, or the report of its program's failure written
#: (:attr:`JobRow.exit_reason`). ``fetched``: they are in place, and its batch is being retired.
#: ``done``, ``failed`` (held by HTCondor): over. ``cancelled``: HTCondor does not want it any more.
STATES: Final = tuple(LEDGER_WORDS)
ENDED: Final[frozenset[str]] = frozenset({"done", "failed", "cancelled"})
ALIVE: Final[frozenset[str]] = frozenset(STATES) - ENDED

#: ``planned``: the jobs' names are chosen; nothing was sent that could create jobs. ``sent``: a
#: submit_batch may have been sent. ``submitted``: all its jobs are on the project. ``giving_up``:
#: it must be aborted for good. ``ended``: all its jobs have ended, and it must be retired.
#: ``retired``: over, even if it was never created on the project.
BatchState = Literal["planned", "sent", "submitted", "giving_up", "ended", "retired"]
BATCH_STATES: Final[tuple[BatchState, ...]] = get_args(BatchState)
#: Of these it is not certain what the project has.
UNCLEAR: Final = ("planned", "sent", "giving_up")

#: Seconds after which HTCondor has asked about all jobs that it still has: with 10,000 jobs it asks
#: every 2,000 s (``gridmanager-batch.rst``, "Life of a job").
HTCONDOR_HAS_ASKED: Final = 3600.0


def sql_set(states: Iterable[str]) -> str:
    """Return a list for SQL's IN; only for states, never for text from outside."""
    return "(" + ", ".join(f"'{state}'" for state in sorted(states)) + ")"


ALIVE_SQL: Final = sql_set(ALIVE)
#: In the order of the condition of the index ``job_ended``, which SQLite compares word by word.
ENDED_SQL: Final = "('done', 'failed', 'cancelled')"

#: For a row of ``project``: whether it has any live job, or batch or job to abort or retire.
HAS_WORK: Final = (
    f"(EXISTS (SELECT * FROM job WHERE project_id = project.id AND state IN {ALIVE_SQL}) "  # noqa: S608
    "OR EXISTS (SELECT * FROM job WHERE project_id = project.id AND abort_pending = 1) "
    "OR EXISTS (SELECT * FROM batch WHERE project_id = project.id AND state IN "
    "('planned', 'sent', 'submitted', 'giving_up', 'ended')))"
)


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be accepted.

    Attributes:
        job_directory: HTCondor's only unique name of a job (``gridmanager-batch.rst``, "The submit
            ad" and "Crashes").
        project_name: the project's name in the settings; "" for the section ``[project]``.
        group_key: jobs of one owner (project and account) with equal keys can share a batch (column
            ``group_key``).
        size: about how many bytes the job adds to a submit_batch.
        description: JSON, which the ledger does not read.
    """

    job_directory: str
    project_url: str
    account: str
    project_name: str
    app_name: str
    group_key: str
    size: int
    description: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Why HTCondor is to hold a job: HoldReason, HoldReasonCode and HoldReasonSubCode.

    ``exit_code`` and ``cpu_time`` are its program's, as in :class:`JobRow`.
    """

    reason: str
    code: int
    subcode: int
    exit_code: int | None = None
    cpu_time: float | None = None


@dataclass(frozen=True, slots=True)
class ProgramFailure:
    """How a job's program failed: HTCondor is to complete the job with this.

    Attributes:
        exit_code: the program's exit status.
        cpu_time: seconds; None: unknown.
        reason: HTCondor's ExitReason: which job failed where, and how.
        stderr: the text to write as the job's stderr.
    """

    exit_code: int
    cpu_time: float | None
    reason: str
    stderr: str


#: Exit codes below its negative are Windows' own, not signals.
_LAST_SIGNAL = 64


class JobRow(NamedTuple):
    """A job. Times are seconds since the epoch.

    Attributes:
        attempt: counted from 1 for each ``job_directory``.
        job_name: the job's name on the project; None while it is not in a batch.
        changed: when its state last changed.
        last_polled: when HTCondor is last known to have asked about it.
        end_reported: whether HTCondor was told that it ended (``done`` or ``failed``).
        abort_pending: whether it must still be aborted on the project.
        writing: whether the manager may be writing into the job's directory.
        exit_code: its program's exit status; if a signal ended it in its container, the signal's
            negative number.
        cpu_time: seconds.
        trouble: its latest trouble, for people.
        exit_reason: how its program failed, for people; None: it did not, as far as is known.
        elapsed_time: of the instance whose outputs were fetched, seconds.
        bytes_sent: of its outputs and standard streams.
        bytes_received: of its inputs.
    """

    id: int
    job_directory: str
    attempt: int
    project_url: str
    account: str
    project_name: str
    app_name: str
    group_key: str
    size: int
    description: str
    state: str
    batch_id: int | None
    job_name: str | None
    accepted: float
    changed: float
    last_polled: float
    end_reported: bool
    abort_pending: bool
    writing: bool
    exit_code: int | None
    cpu_time: float | None
    hold_reason: str | None
    hold_code: int | None
    hold_subcode: int | None
    trouble: str | None
    exit_reason: str | None = None
    elapsed_time: float | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it is not done, failed or cancelled."""
        return self.state in ALIVE

    @property
    def signal(self) -> int | None:
        """The signal that ended its program; None: none, as far as is known."""
        code = self.exit_code or 0
        return -code if -_LAST_SIGNAL <= code < 0 else None

    @property
    def storage_trouble(self) -> str | None:
        """Why this submit node cannot store its outputs now; None: it can, as far as is known."""
        is_storage = (self.trouble or "").endswith(f"[{OutputError.code}]")
        return self.trouble if self.state == "finished" and is_storage else None


class BatchRow(NamedTuple):
    """A batch. Times are seconds since the epoch.

    BOINC_SUBMIT's batches have no jobs, app or lease in the ledger. They are ``sent`` (a
    submit_batch may be under way, or its submitter died) or ``giving_up``; managers ignore them.

    Attributes:
        project_batch_id: its id on the project, once known; always known for BOINC_SUBMIT's.
        lease_until: when the project may expire it.
        not_before: when to try again; for BOINC_SUBMIT's ``sent`` batches, when the submitter gives
            up, or later if HTCondor has asked for the batch after that.
        trouble: its latest trouble, for people.
        trouble_since: when the trouble began.
        listed: how many jobs it had on the project when it was last aborted.
        sent: of BOINC_SUBMIT's, when the last submit_batch was about to be sent or, if unknown,
            when it was first recorded.
    """

    id: int
    name: str
    project_url: str
    account: str
    app_name: str
    group_key: str
    state: BatchState
    project_batch_id: int | None
    created: float
    lease_until: float
    not_before: float
    trouble: str | None
    trouble_since: float | None = None
    listed: int | None = None
    sent: float | None = None


#: A job's name on the project.
JOB_NAME: Final = "batch.name || '-' || job.number"


def _select(row: type[JobRow | BatchRow], table: str, **elsewhere: str) -> str:
    """Return the SELECT of all fields of a row; ``elsewhere``: those that are not in its table."""
    return "SELECT " + ", ".join(elsewhere.get(name, f"{table}.{name}") for name in row._fields)


_DESCRIPTION: Final = "(SELECT json FROM description WHERE job_id = job.id)"
#: CROSS JOIN makes SQLite begin with the table of jobs (its documentation, "Manual Control Of Query
#: Plans Using CROSS JOIN").
_SELECT_JOBS: Final = (
    _select(
        JobRow,
        "job",
        project_url="project.url",
        account="project.account",
        description=_DESCRIPTION,
        job_name=JOB_NAME,
    )
    + " FROM job CROSS JOIN project ON project.id = job.project_id "
    "LEFT JOIN batch ON batch.id = job.batch_id "
)
_SELECT_BATCHES: Final = (
    _select(
        BatchRow,
        "batch",
        project_url="coalesce(project.url, batch.project_url)",
        account="coalesce(project.account, batch.project_account)",
    )
    + " FROM batch LEFT JOIN project ON project.id = batch.project_id "
)

#: A condition for BOINC_SUBMIT's rows of ``batch`` of a project and an account.
OF_SUBMIT: Final = "batch.project_id IS NULL AND batch.identity = ? AND batch.project_account = ?"

#: Identifies a project: the part of its normalized address after the scheme.
PROJECT_IDENTITY: Final = "substr(project.url, instr(project.url, ':') + 1)"

#: The fields that SQLite has as 0 or 1.
_FLAGS: Final = slice(JobRow._fields.index("end_reported"), JobRow._fields.index("writing") + 1)


def job_rows(
    connection: sqlite3.Connection,
    rest: str,
    parameters: Iterable[object] = (),
    *,
    described: bool = True,
) -> list[JobRow]:
    """Return the jobs selected by ``rest`` (WHERE, ORDER BY, LIMIT).

    ``described`` is False for lists of jobs, which leave out the descriptions (they are "").
    """
    select = _SELECT_JOBS if described else _SELECT_JOBS.replace(_DESCRIPTION, "''")
    rows = connection.execute(select + rest, tuple(parameters))
    return [
        JobRow(*row[: _FLAGS.start], *map(bool, row[_FLAGS]), *row[_FLAGS.stop :]) for row in rows
    ]


def batch_rows(
    connection: sqlite3.Connection, rest: str, parameters: Iterable[object] = ()
) -> list[BatchRow]:
    """Return the batches selected by ``rest`` (WHERE, ORDER BY, LIMIT)."""
    return [BatchRow(*row) for row in connection.execute(_SELECT_BATCHES + rest, tuple(parameters))]


def column(
    connection: sqlite3.Connection, statement: str, parameters: Iterable[object] = ()
) -> list[Any]:
    """Return the values of a query that has one column."""
    return [value for (value,) in connection.execute(statement, tuple(parameters))]


def project_id(connection: sqlite3.Connection, url: str, account: str) -> int:
    """Return the row id of a project and account; 0, which no row has, if there is none.

    Any address of the project works.
    """
    row = connection.execute(
        f"SELECT id FROM project WHERE {PROJECT_IDENTITY} = ? AND account = ?",  # noqa: S608
        (url_identity(url), account),
    ).fetchone()
    return 0 if row is None else int(row[0])
