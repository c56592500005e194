"""What people and monitoring are told about a ledger: problems, and numbers of each project.

Monitoring may ask every minute, with hundreds of thousands of jobs. So jobs are counted by an
index, and of the jobs that are over only the latest are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.config.urls import url_identity
from boinc_gahp.errors import OutputError
from boinc_gahp.ledger._progress import DAY
from boinc_gahp.ledger._requests import Requests
from boinc_gahp.ledger.ledger import all_pending_aborts
from boinc_gahp.ledger.rows import ALIVE, ALIVE_SQL, ENDED_SQL, HAS_WORK, STATES

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from boinc_gahp.ledger.store import Store

#: Seconds until people are told of a problem: by then, passing ones are over.
PERSISTENT_AFTER = 3600.0

#: Seconds after which pending requests should have been sent: cron sends them every hour.
OVERDUE = DAY


class Problem(NamedTuple):
    """A problem that a person should look into.

    Attributes:
        reason: one of those in ``docs/htcondor-admins.rst``, "Monitoring".
        url: the project concerned; empty if all are.
        account: the account concerned, likewise.
        since: when it began, in seconds since the epoch; 0: unknown.
        text: one line for people.
        batch_id: the ledger's id of the batch that has it; None if it concerns all.
    """

    reason: str
    url: str
    account: str
    since: float
    text: str
    batch_id: int | None = None


#: Seconds since the epoch; in JSON it is a text.
Time = float


@dataclass(slots=True)
class JobsInState:
    """The jobs of a project and account that are in one state."""

    #: ``waiting``, ``sending``, ``queued``, ``running``, ``finished``, ``fetched``, ``done``,
    #: ``failed`` or ``cancelled``
    state: str
    #: how many jobs are in it
    number: int = 0
    #: when HTCondor handed over the oldest; null for finished jobs
    oldest: Time | None = None
    #: since when that one has been in this state; null for finished jobs
    since: Time | None = None


@dataclass(slots=True)
class Owed:
    """How many requests are still to be sent to a project."""

    #: jobs to be aborted
    aborts: int = 0
    #: batches to be retired
    retirements: int = 0
    #: batches to be aborted: it is not known whether their jobs were made
    unsure_aborts: int = 0
    #: batches to be aborted that HTCondor 9 had begun to submit
    old_aborts: int = 0


@dataclass(slots=True)
class Overview:
    """What the ledger has of a project and account, and who works on it."""

    #: the project's address
    url: str
    #: NAME of ``[projects.NAME]``; empty for ``[project]``
    project_name: str
    #: the fingerprint of the account; not the authenticator
    account: str
    #: whether the settings have the project and the account
    known: bool = False
    #: whether a process works on the jobs; null: not known
    daemon: bool | None = None
    #: the process that works on them; null: not known
    process: int | None = None
    #: when the project last answered a question about jobs
    last_poll: Time | None = None
    #: when HTCondor last asked about an unfinished job
    last_asked: Time | None = None
    #: what is wrong with the project now
    trouble: str | None = None
    #: since when
    trouble_since: Time | None = None
    #: jobs that HTCondor has not asked about for as long as ``[htcondor] lease``
    orphans: int = 0
    #: requests that are still to be sent to the project
    owed: Owed = field(default_factory=Owed)
    #: for each state:
    jobs: list[JobsInState] = field(default_factory=lambda: [JobsInState(each) for each in STATES])
    #: with ``--jobs``: its batches and jobs that are not over
    details: dict[str, list[dict[str, Any]]] | None = None


class Problems(Requests):
    """Problems that a person should look into."""

    def persistent_problems(self, now: float, after: float = PERSISTENT_AFTER) -> list[Problem]:
        """Return the problems that have lasted for ``after`` seconds, the oldest first.

        Those with the reasons ``project`` and ``batch`` stop jobs, those with the reason ``owed``
        do not.
        """
        statements = (_OF_PROJECTS, _OF_BATCHES, _OF_ABORTS, _OF_REQUESTS, _OF_SUBMITS)
        found = self._problems(statements, {"before": now - after})
        return sorted(found, key=lambda each: each.since)

    def other_problems(
        self, now: float, after: float, orphaned: float, hold_code: int
    ) -> list[Problem]:
        """Return problems that are only told to those who ask.

        Outputs that this submit node cannot store are told at once: only people here can help.

        Args:
            now: seconds since the epoch.
            after: outputs that could not be delivered for so many seconds, and jobs that were held
                within them with ``hold_code``, are problems.
            orphaned: live jobs that HTCondor has not asked about since then are orphans.
            hold_code: of the holds because of the account.
        """
        values = {
            "before": now - after,
            "orphaned": orphaned,
            "overdue": now - OVERDUE,
            "code": hold_code,
        }
        return self._problems((_OUTPUTS, _HELD, _UNSENT, _ORPHANS), values)

    def _problems(self, statements: Iterable[str], values: dict[str, float]) -> list[Problem]:
        with self.store.read() as connection:
            return [
                Problem(*row)
                for statement in statements
                for row in connection.execute(statement, values)
            ]


_OF_PROJECTS = (
    "SELECT 'project', url, account, trouble_since, trouble FROM project "  # noqa: S608
    f"WHERE trouble_since <= :before AND {HAS_WORK}"
)
_OF_BATCHES = (
    "SELECT iif(batch.state = 'ended', 'owed', 'batch'), url, account, batch.trouble_since, "
    "'batch ' || batch.name || CASE batch.state WHEN 'ended' THEN ' is still to be retired: ' "
    "WHEN 'giving_up' THEN ' is still to be aborted: ' ELSE ': ' END || batch.trouble, batch.id "
    "FROM project CROSS JOIN batch ON batch.project_id = project.id AND batch.state IN "
    "('planned', 'sent', 'submitted', 'giving_up', 'ended') "
    "WHERE batch.trouble IS NOT NULL AND batch.trouble_since <= :before "
    # A trouble of the whole project is reported instead.
    "AND coalesce(project.trouble_since > :before, 1)"
)
#: How many jobs or batches a group of rows has, in words.
_JOBS = "count(*) || iif(count(*) = 1, ' job', ' jobs')"
_BATCHES = "count(*) || iif(count(*) = 1, ' batch', ' batches')"
# A cancelled job's state changes no more. The jobs of a batch being aborted end with it.
_OF_ABORTS = (
    "SELECT 'owed', url, account, min(job.changed), "  # noqa: S608
    f"{_JOBS} || iif(count(*) = 1, ' is', ' are') || ' still to be aborted' "
    "FROM project CROSS JOIN job ON job.project_id = project.id AND job.abort_pending = 1 "
    "CROSS JOIN batch ON batch.id = job.batch_id "
    "WHERE batch.state IN ('submitted', 'ended', 'retired') "
    "AND job.changed <= :before GROUP BY project.id"
)
_OF_REQUESTS = (
    "SELECT 'owed', project_url, account, min(recorded), "
    "'the project has not been told yet to ' || iif(command = 'abort', 'abort ', 'retire ') || "
    "count(*) || iif(command = 'abort', ' jobs', ' batches') || ' of HTCondor 9' "
    "FROM owed_request WHERE recorded <= :before GROUP BY project_url, account, command"
)
_OF_SUBMITS = (
    "SELECT 'owed', project_url, project_account, max(not_before, sent), "
    "'batch ' || name || ' is still to be aborted' FROM batch "
    "WHERE project_id IS NULL AND state = 'giving_up' AND max(not_before, sent) <= :before"
)
# The trouble comes from the row with the minimum (SQLite's documentation, "Bare columns in an
# aggregate query").
#: That of a trouble with this submit node's storage (:attr:`.JobRow.storage_trouble`).
_ENDING = f"'%[{OutputError.code}]'"
_OUTPUTS = (
    "SELECT 'outputs', url, account, min(job.changed), "  # noqa: S608
    f"'the outputs of ' || {_JOBS} || ' cannot be fetched: ' || job.trouble "
    "FROM project CROSS JOIN job ON job.project_id = project.id AND job.state = 'finished' "
    f"WHERE job.trouble IS NOT NULL AND (job.changed <= :before OR job.trouble LIKE {_ENDING}) "
    "GROUP BY project.id"
)
_HELD = (
    f"SELECT 'account', url, account, 0, {_JOBS} || ' went on hold lately with code ' || :code "  # noqa: S608
    "|| ': condor_q -hold tells what is wrong with the account' "
    f"FROM job CROSS JOIN project ON project.id = job.project_id WHERE job.state IN {ENDED_SQL} "
    "AND job.changed >= :before AND job.hold_code = :code GROUP BY project.id"
)
_UNSENT = (
    f"SELECT 'owed', url, account, 0, {_BATCHES} || ' of this project should have been retired "  # noqa: S608
    "or aborted by now, and nobody did it: run boinc_gahp ledger reconcile, and have cron run it "
    "(conf/boinc_gahp.cron)' FROM (SELECT url, account FROM project CROSS JOIN batch "
    "ON batch.project_id = project.id AND batch.state IN ('ended', 'giving_up') "
    "WHERE batch.trouble IS NULL AND batch.changed < :overdue "
    "UNION ALL SELECT project_url, project_account FROM batch "
    "WHERE project_id IS NULL AND state = 'sent' AND not_before < :overdue) GROUP BY url, account"
)
_ORPHANS = (
    f"SELECT 'orphans', url, account, 0, 'HTCondor has not asked about ' || {_JOBS} || ' for "  # noqa: S608
    "as long as [htcondor] lease: boinc_gahp ledger status --jobs names them; drop those that "
    "condor_q does not have with boinc_gahp ledger forget --alive' "
    f"FROM project CROSS JOIN job ON job.project_id = project.id AND job.state IN {ALIVE_SQL} "
    "WHERE job.last_polled < :orphaned GROUP BY project.id"
)


def overviews(store: Store, now: float, orphaned: float) -> list[Overview]:
    """Return an overview of each project and account, oldest first, all at one moment.

    ``known``, ``daemon``, ``process`` and ``details`` are left to the caller.

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
    owners = {(url_identity(each.url), each.account): each for each in found}

    def owed_to(url: str, account: str) -> Owed:
        owner = (url_identity(url), account)
        return owners.setdefault(owner, Overview(url, "", account)).owed

    for batch in all_pending_aborts(store):
        # A submission whose time is not over may be under way.
        if batch.state == "giving_up" or batch.not_before < now:
            owed_to(batch.project_url, batch.account).old_aborts += 1
    with store.read() as connection:
        owed = connection.execute(
            "SELECT project_url, account, command = 'abort', count(*) "
            "FROM owed_request GROUP BY project_url, account, command"
        ).fetchall()
    for url, account, is_abort, number in owed:
        its = owed_to(url, account)
        its.aborts += number * is_abort
        its.retirements += number * (not is_abort)
    return list(owners.values())


def _of_owner(connection: sqlite3.Connection, row: tuple[Any, ...], orphaned: float) -> Overview:
    owner, url, account, name, trouble, since, polled = row

    def number(table: str, condition: str) -> int:
        statement = f"SELECT count(*) FROM {table} WHERE project_id = ? AND {condition}"  # noqa: S608
        found: int = connection.execute(statement, (owner,)).fetchone()[0]
        return found

    found = Overview(url, name, account, last_poll=polled, trouble=trouble, trouble_since=since)
    found.last_asked, found.orphans = connection.execute(
        "SELECT max(last_polled), count(*) FILTER (WHERE last_polled < ?) FROM job "  # noqa: S608
        f"WHERE project_id = ? AND state IN {ALIVE_SQL}",
        (orphaned, owner),
    ).fetchone()
    found.owed.aborts = number("job", "abort_pending = 1")
    found.owed.retirements = number("batch", "state = 'ended'")
    found.owed.unsure_aborts = number("batch", "state = 'giving_up'")
    for each in found.jobs:
        each.number = number("job", f"state = '{each.state}'")
        if each.number and each.state in ALIVE:
            each.oldest, each.since = connection.execute(
                "SELECT accepted, changed FROM job WHERE project_id = ? AND state = ? "
                "ORDER BY id LIMIT 1",
                (owner, each.state),
            ).fetchone()
    return found
