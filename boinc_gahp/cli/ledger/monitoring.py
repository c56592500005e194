"""The state of a user's HTCondor jobs, and the problems that a person should look at.

It only reads: it makes no ledger and no lock, and asks no project. Normal states are not reported:
jobs may wait for volunteers for days.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Final

from boinc_gahp.cli.ledger import showing
from boinc_gahp.config.accounts import named_projects
from boinc_gahp.config.layers import load
from boinc_gahp.config.places import ledger_file, state_dir, user_name
from boinc_gahp.errors import ConfigError, LedgerError
from boinc_gahp.htcondor.owners import explain_unknown, known_owners, owner_key
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.monitoring import PERSISTENT_AFTER, Problem, overviews
from boinc_gahp.ledger.rows import ALIVE
from boinc_gahp.ledger.store import LOG_LIMIT
from boinc_gahp.terminal.words import at
from boinc_gahp.text import count, size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.ledger.jobs import JobLedger
    from boinc_gahp.ledger.monitoring import Overview, Time

#: Why a person should look, with explanations; metrics and JSON use these words.
REASONS: Final = {
    "settings": "the settings cannot be read",
    "ledger": "the ledger cannot be read, or is in an unsuitable place",
    "disk": "the disk with the ledger is full, or nearly",
    "stranded": "the settings do not have the project or the account of jobs any more",
    "project": "a project does not answer, or refuses the account",
    "batch": "a batch cannot be sent or asked about",
    "outputs": "outputs of jobs that are done cannot be fetched",
    "account": "jobs were put on hold because of a problem with the account",
    "owed": "aborts and retirements do not reach the project, or nobody sends them",
    "orphans": "HTCondor does not ask about jobs any more",
    "daemon": "there are jobs, and no daemon works on them",
}

#: The reasons that tell of all jobs of a project, or of a batch, that they stand still.
STOPPED: Final = {"project", "batch"}

#: Free bytes that writing the ledger needs in the long run: its log may become as large.
ROOM: Final = LOG_LIMIT


@dataclass(slots=True)
class ReportedProblem:
    """A problem that someone should look into."""

    #: one of the reasons in :ref:`monitoring`
    reason: str
    #: the affected project; null: all
    project: str | None
    #: the affected account's fingerprint; null: all
    account: str | None
    #: when it began; null: not known
    since: Time | None
    #: what is wrong, and what to do
    text: str


@dataclass(slots=True)
class Status:
    """The state of a user's jobs."""

    #: the owner of the jobs
    user: str
    #: the time of the report
    time: Time
    #: the ledger's path; null: the settings cannot be read
    ledger: str | None = None
    #: whether it could be read; also true if it does not exist yet, and false if it is lost
    readable: bool = False
    #: its size; null: it does not exist
    bytes: int | None = None
    #: how much the user may still write there
    available_bytes: int | None = None
    #: how many input files are public for jobs of this user, also of people's batches
    published_files: int = 0
    #: their size
    published_bytes: int = 0
    #: the projects and accounts in it, oldest first
    projects: list[Overview] = field(default_factory=list)
    #: problems that someone should look into, the worst first; the exit status is 1 if there are
    #: any
    problems: list[ReportedProblem] = field(default_factory=list)


def status_of(config: str | None, after: float, *, details: bool = False) -> Status:
    """Return the state of this user's jobs; errors become a part of it and are never raised.

    Args:
        config: the settings file named, or None.
        after: seconds after which a problem is reported.
        details: whether to list batches and jobs.
    """
    status = Status(user_name(), time.time())
    problems = list(_look(status, config, after, details=details))
    # The most serious first.
    order = list(REASONS)
    status.problems = [
        ReportedProblem(each.reason, each.url or None, each.account or None, each.since, each.text)
        for each in sorted(problems, key=lambda each: order.index(each.reason))
    ]
    return status


def _look(status: Status, config: str | None, after: float, *, details: bool) -> Iterator[Problem]:
    """Fill in what there is, and yield what is wrong."""
    try:
        settings = load(config)
        path = ledger_file(settings)
    except ConfigError as error:
        yield Problem("settings", "", "", 0.0, str(error))
        return
    status.ledger = str(path)
    directories = [project.publish_directory for _, project in named_projects(settings)]
    if any(directories):
        from boinc_gahp.submit.published import usage

        status.published_files, status.published_bytes = usage(*directories)
    # Look at this before the ledger, which cannot be opened if there is no room at all.
    yield from _disk(status, path)
    try:
        with showing.opened(settings) as ledger:
            if ledger is not None:
                found = _projects(ledger, settings, status.time, details=details)
                status.projects = list(found)
                yield from _problems(ledger, status, settings, after)
        status.readable = True
    except LedgerError as error:
        yield Problem("ledger", "", "", 0.0, str(error))


def stopped(
    jobs: JobLedger, settings: Settings, now: float, after: float = PERSISTENT_AFTER
) -> list[Problem]:
    """Return what has been wrong for ``after`` seconds, and the owners that the settings lack now.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    known = known_owners(settings)
    found = [
        Problem("stranded", url, account, 0.0, explain_unknown(url, account, name, settings))
        for url, account, name in jobs.owners()
        if owner_key(url, account) not in known
    ]
    lacking = {owner_key(each.url, each.account) for each in found}
    return found + [
        each
        for each in jobs.persistent_problems(now, after)
        # With an unknown owner, all other problems follow from that.
        if each.reason == "owed" or owner_key(each.url, each.account) not in lacking
    ]


def _disk(status: Status, path: Path) -> Iterator[Problem]:
    # Without a ledger there is nothing to look at.
    with suppress(OSError):
        log = path.with_name(f"{path.name}-wal")
        status.bytes = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        disk = os.statvfs(path.parent)
        available = status.available_bytes = disk.f_bavail * disk.f_frsize
        if available < ROOM:
            text = (
                f"{size(available)} are free on the disk with {path.parent}; with less than "
                f"{size(ROOM)} the ledger soon cannot be written, and then no job proceeds: "
                "make room"
            )
            yield Problem("disk", "", "", 0.0, text)


def _projects(
    jobs: JobLedger, settings: Settings, now: float, *, details: bool
) -> Iterator[Overview]:
    known = known_owners(settings)
    for each in overviews(jobs.store, now, now - settings.htcondor.lease):
        owner = each.url, each.account
        each.known = owner_key(*owner) in known
        # An owner that has left the settings matters as long as it has something left to do.
        if not (each.known or each.last_asked is not None or any(astuple(each.owed))):
            continue
        lock = AccountLock(state_dir(settings), *owner)
        each.daemon = each.process = None
        with suppress(LedgerError, OSError):
            each.daemon = lock.held_elsewhere()
        if each.daemon:
            each.process = lock.holder()
        if details:
            each.details = {
                "batches": [
                    showing.batch_columns(jobs, batch, now)
                    for batch in jobs.batches(*owner, *showing.UNFINISHED)
                ],
                "jobs": [
                    showing.job_columns(jobs, job, settings.htcondor.lease, now)
                    for job in jobs.under_way(*owner)
                ],
            }
        yield each


def _problems(
    jobs: JobLedger, status: Status, settings: Settings, after: float
) -> Iterator[Problem]:
    now = status.time
    orphaned = now - settings.htcondor.lease
    problems = stopped(jobs, settings, now, after)
    yield from problems
    yield from jobs.other_problems(now, after, orphaned, HoldCode.ACCOUNT)
    in_trouble = {(each.url, each.account) for each in problems if each.reason in STOPPED}
    for each in status.projects:
        if each.known:
            if (each.url, each.account) not in in_trouble:
                yield from _silence(each, settings, now, after)
            yield from _without_daemon(each, now, after)


def _silence(each: Overview, settings: Settings, now: float, after: float) -> Iterator[Problem]:
    """Yield that a daemon has not asked the project for long without giving a reason."""
    since = {row.state: row.since for row in each.jobs if row.since is not None}
    # While large files are sent, other jobs may wait.
    states = {"queued", "running"} if "sending" in since else {"waiting", "queued", "running"}
    to_do = [since[state] for state in states & since.keys()]
    began = AccountLock(state_dir(settings), each.url, each.account).taken()
    if not (each.daemon and to_do and began):
        return
    # It could not ask before it existed and had something to send or to ask about.
    due = max(each.last_poll or 0.0, began, min(to_do))
    pause = max(settings.htcondor.poll_longest, settings.htcondor.poll_all)
    if now - due > after + pause:
        text = (
            f"the daemon (process {each.process}) has sent no jobs, and has had no answer about "
            f"jobs since {at(due)}: the log tells more; end the process if it hangs (kill -KILL "
            f"{each.process}), and HTCondor starts another"
        )
        yield Problem("project", each.url, each.account, due, text)


def _without_daemon(each: Overview, now: float, after: float) -> Iterator[Problem]:
    """Yield that nobody works on jobs: HTCondor does not run, or no longer has them."""
    asked = each.last_asked
    if each.daemon is False and asked is not None and now - asked > after:
        alive = sum(row.number for row in each.jobs if row.state in ALIVE)
        text = (
            f"no daemon works on {count(alive, 'job')}, and HTCondor has not asked about "
            "any: check that condor_q has them and HTCondor runs; drop jobs that it does not have "
            "with boinc_gahp ledger forget --alive"
        )
        yield Problem("daemon", each.url, each.account, asked, text)
