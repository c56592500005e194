"""The state of a user's HTCondor jobs, and the problems that a person should look at.

It only reads: it makes no ledger and no lock, and asks no project. Normal states are not reported:
jobs may wait for volunteers for days.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from boinc_gahp.cli.ledger import words
from boinc_gahp.cli.ledger.wrong import wrong
from boinc_gahp.config import ledger_file, load, state_dir, user_name
from boinc_gahp.errors import ConfigError, LedgerError
from boinc_gahp.htcondor import HoldCode, known_owners, owner_key
from boinc_gahp.ledger import LOG_LIMIT, AccountLock, OverviewOptions, overviews

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.cli.ledger.words import Opened
    from boinc_gahp.config import Settings
    from boinc_gahp.ledger import Overview

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
    "owed": "requests that are owed to the project fail, or nobody sends them",
    "orphans": "HTCondor does not ask about jobs any more",
    "daemon": "there are jobs, and no daemon works on them",
}

#: Seconds after which pending requests should have been sent: cron sends them every hour.
OVERDUE: Final = 86400.0

#: Free bytes that writing the ledger needs in the long run: its log may become as large.
ROOM: Final = LOG_LIMIT


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that a person should look at.

    Attributes:
        reason: one of :data:`REASONS`.
        text: for people; one line.
        url: the project concerned; None if all are.
        account: the account concerned, likewise.
        since: when it began, in seconds since the epoch, if known.
    """

    reason: str
    text: str
    url: str | None = None
    account: str | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True)
class WatchedOwner:
    """An owner in the ledger, and the process that works for it.

    Attributes:
        overview: the ledger's numbers.
        is_known: whether the settings have the project and the account.
        has_daemon: whether a process works for it now; None if unknown.
        process: that process, if known.
        since: when that process began, in seconds since the epoch, if known.
    """

    overview: Overview
    is_known: bool
    has_daemon: bool | None = None
    process: int | None = None
    since: float | None = None


@dataclass(slots=True)
class Status:
    """The result.

    Attributes:
        user: the user whose jobs these are.
        now: time of the check, in seconds since the epoch.
        path: the ledger; None if the settings do not say.
        is_readable: whether it could be read, or does not exist yet.
        nbytes: its size, with its log; None if there is none.
        available: bytes that the user may still write on its disk.
        owners: oldest first.
        findings: the problems that a person should look at.
    """

    user: str
    now: float
    path: Path | None = None
    is_readable: bool = False
    nbytes: int | None = None
    available: int | None = None
    owners: list[WatchedOwner] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def check(config: str | None, after: float) -> Status:
    """Return the state of this user's jobs; errors become a part of it and are never raised.

    Args:
        config: the settings file named, or None.
        after: seconds after which a problem is reported.
    """
    status = Status(user_name(), time.time())
    try:
        settings = load(config)
        status.path = ledger_file(settings)
    except ConfigError as error:
        status.findings.append(Finding("settings", str(error)))
        return status
    # Check this before the ledger, which cannot be opened if there is no room at all.
    _check_disk(status, status.path)
    try:
        with words.opened(settings) as ledger:
            if ledger is not None:
                _check_ledger(status, ledger, settings, after)
        status.is_readable = True
    except LedgerError as error:
        status.findings.append(Finding("ledger", str(error)))
    # The most serious first.
    order = list(REASONS)
    status.findings.sort(key=lambda each: order.index(each.reason))
    return status


def _check_disk(status: Status, path: Path) -> None:
    # Without a ledger there is nothing to check.
    with suppress(OSError):
        log = path.with_name(f"{path.name}-wal")
        status.nbytes = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        found = os.statvfs(path.parent)
        status.available = found.f_bavail * found.f_frsize
    if status.available is not None and status.available < ROOM:
        status.findings.append(
            Finding(
                "disk",
                f"{words.size(status.available)} are free on the disk with {path.parent}; with "
                f"less than {words.size(ROOM)} the ledger soon cannot be written, and then no job "
                "proceeds: make room",
            )
        )


def _check_ledger(status: Status, ledger: Opened, settings: Settings, after: float) -> None:
    now = status.now
    watch = OverviewOptions(
        now=now,
        orphaned=now - settings.htcondor.lease,
        undelivered=now - after,
        held=now - after,
        hold_codes=(HoldCode.ACCOUNT,),
        overdue=now - OVERDUE,
    )
    known = known_owners(settings)
    for each in overviews(ledger.store, watch):
        is_known = owner_key(each.url, each.account) in known
        # An owner that has left the settings matters as long as it has something left to do.
        if is_known or each.job_counts.alive or each.pending:
            status.owners.append(_watched(settings, each, is_known=is_known))
    for problem in wrong(ledger.jobs, settings, now, after):
        reason = "project" if problem.batch_id is None else "batch"
        if not problem.stops:
            reason = "owed"
        elif owner_key(problem.url, problem.account) not in known:
            reason = "stranded"
        since = problem.since if problem.since < now else None
        status.findings.append(Finding(reason, problem.text, problem.url, problem.account, since))
    in_trouble = {
        (each.url, each.account) for each in status.findings if each.reason in {"project", "batch"}
    }
    for owner in status.owners:
        its = owner.overview
        status.findings += _findings(its, settings.htcondor.lease, now, after)
        if owner.is_known:
            if (its.url, its.account) not in in_trouble:
                status.findings += _silence(owner, settings, now, after)
            status.findings += _without_daemon(owner, now, after)


def _watched(settings: Settings, each: Overview, *, is_known: bool) -> WatchedOwner:
    lock = AccountLock(state_dir(settings), each.url, each.account)
    try:
        has_daemon = lock.held_elsewhere()
    except (LedgerError, OSError):
        return WatchedOwner(each, is_known)
    if not has_daemon:
        return WatchedOwner(each, is_known, has_daemon)
    return WatchedOwner(each, is_known, has_daemon, lock.holder(), lock.taken())


def _findings(its: Overview, lease: float, now: float, after: float) -> Iterator[Finding]:
    """Yield the problems of an owner that the ledger alone shows."""
    mine = (its.url, its.account)
    if its.undelivered is not None:
        number, since, trouble = its.undelivered
        yield Finding(
            "outputs",
            f"the outputs of {words.count(number, 'job')} cannot be fetched: {trouble}",
            *mine,
            since,
        )
    if its.held:
        yield Finding(
            "account",
            f"{words.count(its.held, 'job')} went on hold within {words.span(after)} with code "
            f"{HoldCode.ACCOUNT:d}: condor_q -hold tells what is wrong with the account",
            *mine,
        )
    forgotten = sum(
        batch.state == "sent" and batch.not_before + OVERDUE < now for batch in its.submit_aborts
    )
    if its.overdue or forgotten:
        batches = words.count(its.overdue + forgotten, "batch", "batches")
        yield Finding(
            "owed",
            f"{batches} of this project should have been retired or aborted by now, and nobody did "
            "it: run boinc_gahp ledger reconcile, and have cron run it (conf/boinc_gahp.cron)",
            *mine,
        )
    if its.orphans:
        yield Finding(
            "orphans",
            f"HTCondor has not asked about {words.count(its.orphans, 'job')} for "
            f"{words.span(lease)}: boinc_gahp ledger list names them; drop those that condor_q "
            "does not have with boinc_gahp ledger forget --alive",
            *mine,
        )


def _silence(
    owner: WatchedOwner, settings: Settings, now: float, after: float
) -> Iterator[Finding]:
    """Yield that a daemon has not asked the project for long without giving a reason."""
    its = owner.overview
    on_project = [
        since.changed
        for state, since in (its.oldest or {}).items()
        if state in {"queued", "running"}
    ]
    if not (owner.has_daemon and on_project and its.polled is not None and owner.since is not None):
        return
    # It could not ask before it existed and had something to ask about.
    due = max(its.polled, owner.since, min(on_project))
    pause = max(settings.htcondor.poll_longest, settings.htcondor.poll_all)
    if now - due > after + pause:
        yield Finding(
            "project",
            f"the daemon (process {owner.process}) has had no answer about jobs since "
            f"{words.at(its.polled)}: the log tells more; end the process if it hangs, and "
            "HTCondor starts another",
            its.url,
            its.account,
            its.polled,
        )


def _without_daemon(owner: WatchedOwner, now: float, after: float) -> Iterator[Finding]:
    """Yield that nobody works on jobs: HTCondor does not run, or no longer has them."""
    its = owner.overview
    if owner.has_daemon is False and its.last_polled is not None and now - its.last_polled > after:
        yield Finding(
            "daemon",
            f"no daemon works on {words.count(its.job_counts.alive, 'job')}, and HTCondor has not "
            "asked about any: check that condor_q has them and HTCondor runs; drop jobs that it "
            "does not have with boinc_gahp ledger forget --alive",
            its.url,
            its.account,
            its.last_polled,
        )
