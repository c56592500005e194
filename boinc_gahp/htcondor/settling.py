"""Pays what is owed to projects without a daemon, for ``boinc_gahp ledger settle``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.config import state_dir
from boinc_gahp.errors import GahpError
from boinc_gahp.htcondor.context import Gates
from boinc_gahp.htcondor.manager import Keeper, Settled
from boinc_gahp.htcondor.owners import explain_unknown, known_owners, owner_key
from boinc_gahp.ledger import JobLedger

if TYPE_CHECKING:
    from boinc_gahp.bridge import Opener
    from boinc_gahp.config import Settings


@dataclass(frozen=True, slots=True)
class Settlement:
    """The result of paying one owner's debts.

    Attributes:
        url: the project's address.
        account: the account, as the ledger has it.
        project_name: its name in the settings; "" for the section ``[project]``.
        settled: what was owed before and is owed now; None if that could not be found out.
        problem: why not, for people; None if all went well.
    """

    url: str
    account: str
    project_name: str
    settled: Settled | None = None
    problem: str | None = None


def settle(settings: Settings, opener: Opener, deadline: float) -> tuple[Settlement, ...]:
    """Pay what is owed to all projects; see :meth:`Keeper.settle_once`.

    Owners that a daemon works for are left to it.

    Args:
        settings: all settings.
        opener: opens the ledger and the bridges.
        deadline: ``time.monotonic()`` after which nothing more is begun.

    Raises:
        LedgerError: the ledger cannot be opened or read.
    """
    ledger = opener.ledger(settings)
    jobs = JobLedger(ledger.store)
    known = known_owners(settings)
    names = {owner_key(url, account): (url, name) for url, account, name in jobs.owners()}
    for owner, its in known.items():
        # Interrupted submissions of BOINC_* commands are debts, too.
        if owner not in names and ledger.debts(*owner, time.time()):
            names[owner] = (its.url, "")
    settlements = []
    for (identity, account), (url, name) in names.items():
        project = known.get((identity, account))
        if project is None:
            problem = explain_unknown(url, account, name, settings)
            settlements.append(Settlement(url, account, name, problem=problem))
            continue
        try:
            keeper = Keeper(
                opener.open(settings, project),
                jobs,
                (url, account),
                settings=settings,
                gates=Gates(),
                state_dir=state_dir(settings),
            )
            try:
                settled = keeper.settle_once(deadline)
            finally:
                keeper.close(0.0)
        except GahpError as error:
            settlements.append(Settlement(url, account, name, problem=str(error)))
        else:
            settlements.append(Settlement(url, account, name, settled))
    return tuple(settlements)
