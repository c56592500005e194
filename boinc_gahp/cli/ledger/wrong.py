"""Problems in a ledger that a person should look into: ``ledger list``, ``status``, ``check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.htcondor import explain_unknown, known_owners, owner_key
from boinc_gahp.ledger import PERSISTENT_AFTER, PersistentProblem
from boinc_gahp.text import printable, span

if TYPE_CHECKING:
    from boinc_gahp.config import Settings
    from boinc_gahp.ledger import JobLedger


def wrong(
    jobs: JobLedger, settings: Settings, now: float, after: float = PERSISTENT_AFTER
) -> list[PersistentProblem]:
    """Return what has been wrong for ``after`` seconds, and the owners that the settings lack now.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    known = known_owners(settings)
    found = [
        PersistentProblem(
            url, account, name, None, now, explain_unknown(url, account, name, settings), True
        )
        for url, account, name in jobs.owners()
        if owner_key(url, account) not in known
    ]
    lacking = {owner_key(each.url, each.account) for each in found}
    return found + [
        each
        for each in jobs.persistent_problems(now, after)
        # With an unknown owner, all other problems follow from that.
        if not (each.stops and owner_key(each.url, each.account) in lacking)
    ]


def wrong_words(each: PersistentProblem, now: float) -> str:
    """Return a problem for people, on one line."""
    ago = f" for {span(now - each.since)}" if each.since < now else ""
    return f"{printable(each.url)}{ago}: {printable(each.text)}"
