"""Sends what is pending for projects without a daemon, for ``boinc_gahp ledger reconcile``."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import ConfigError, GahpError
from boinc_gahp.htcondor._context import AccountContext, CancelScopes
from boinc_gahp.htcondor._manager import AccountManager
from boinc_gahp.htcondor.owners import explain_unknown, known_owners, owner_key
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.upkeep import drop_unneeded

if TYPE_CHECKING:
    from boinc_gahp.config.settings import Settings
    from boinc_gahp.fetch.context import Opener


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The result of sending what is pending for one owner.

    Attributes:
        url: the project's address.
        account: the account, as the ledger has it.
        project_name: its name in the settings; "" for the section ``[project]``.
        pending: see :meth:`AccountManager.reconcile_once`.
        problem: why it could not be found out what is pending, for people; None if all went well.
    """

    url: str
    account: str
    project_name: str
    pending: tuple[tuple[int, int], ...] | None = None
    problem: str | None = None


def reconcile(settings: Settings, opener: Opener, deadline: float) -> tuple[Reconciliation, ...]:
    """Send what is pending for all projects; see :meth:`AccountManager.reconcile_once`.

    Owners that a daemon works for are left to it. What ended long ago is dropped from the ledger.

    Args:
        settings: all settings.
        opener: opens the ledger and the contexts.
        deadline: ``time.monotonic()`` after which nothing more is begun.

    Raises:
        LedgerError: the ledger cannot be opened or read.
    """
    ledger = opener.ledger(settings)
    jobs = JobLedger(ledger.store)
    known = known_owners(settings)
    names = {owner_key(url, account): (url, name) for url, account, name in jobs.owners()}
    for owner, its in known.items():
        # BOINC_* requests that were cut short or failed leave something, too.
        if owner not in names and (
            ledger.pending_aborts(*owner, time.time())
            or ledger.owed(*owner, "abort")
            or ledger.owed(*owner, "retire")
        ):
            names[owner] = (its.url, "")
    reconciliations = []
    for (identity, account), (url, name) in names.items():
        project = known.get((identity, account))
        pending = problem = None
        try:
            if project is None:
                raise ConfigError(explain_unknown(url, account, name, settings))
            opened = opener.open(settings, project)
            manager = AccountManager(
                AccountContext(opened, jobs, (url, account), settings, CancelScopes())
            )
            try:
                pending = manager.reconcile_once(deadline)
            finally:
                manager.close(0.0)
        except GahpError as error:
            problem = str(error)
        reconciliations.append(Reconciliation(url, account, name, pending, problem))
    drop_unneeded(jobs, time.time(), settings.htcondor, threading.Event(), untold=False)
    return tuple(reconciliations)
