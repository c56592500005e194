"""What an admin gets to see of troubles that last, and jobs that nobody can work on any more.

Everything it knows is in the ledger: daemons live for minutes or weeks, as HTCondor has it.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from boinc_gahp.blah.codes import HoldCode
from boinc_gahp.blah.owners import explain_unknown, owner_key
from boinc_gahp.blah.status_ad import SUSPENDED
from boinc_gahp.config import state_dir
from boinc_gahp.ledger import Hold, KeeperLock
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from boinc_gahp.blah.owners import Owner
    from boinc_gahp.config import Settings
    from boinc_gahp.ledger import JobLedger, JobRow

log = logging.getLogger("boinc_gahp.blah")

#: Troubles that the day's lines in the log name.
_NAMED = 20


class LastingTroubles:
    """Which jobs wait for something that has been wrong for an hour; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: frozenset[Owner] = frozenset()
        self._batches: frozenset[int] = frozenset()
        self._said: set[str] = set()

    def look(self, jobs: JobLedger, now: float) -> None:
        """See what has been wrong for long; once a day the log says it.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        lasting = jobs.lasting(now)
        stops = [each for each in lasting if each.stops]
        with self._lock:
            self._owners = frozenset(
                owner_key(each.url, each.account) for each in stops if each.batch_id is None
            )
            self._batches = frozenset(each.batch_id for each in stops if each.batch_id is not None)
        if lasting and jobs.take_turn("troubles said", now):
            for each in lasting[:_NAMED]:
                hours = (now - each.since) / 3600
                log.warning("For %.0f h, %s: %s", hours, each.url, each.text)
            if len(lasting) > _NAMED:
                more = len(lasting) - _NAMED
                log.warning("and %d more: boinc_gahp ledger list has them all", more)

    def shown(self, row: JobRow, answer: tuple[int, str]) -> tuple[int, str]:
        """Return what HTCondor is told of a job: suspended, if it waits for something for long.

        It shows that as GridJobStatus, and changes nothing else (``gridmanager-batch.md``, 5).
        """
        if not row.is_alive:
            return answer
        with self._lock:
            waits = row.batch_id in self._batches or (
                owner_key(row.project_url, row.account) in self._owners
            )
        return (SUSPENDED, answer[1]) if waits else answer

    def unknown(
        self, jobs: JobLedger, settings: Settings, owner: tuple[str, str, str], now: float
    ) -> None:
        """See to the jobs of an owner that the settings do not have: in the end they are held.

        Args:
            jobs: the ledger.
            settings: all settings, as they are now.
            owner: URL, account and the project's name, as the ledger has them.
            now: seconds since the epoch.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        url, account, name = owner
        if KeeperLock(state_dir(settings), url, account).held_elsewhere():
            # Another daemon has other settings, or has not seen that they changed.
            jobs.unknown(url, account, False)
            return
        since = jobs.unknown(url, account, True)
        words = explain_unknown(url, account, name, settings)
        jobs.project_trouble(url, account, words)
        wait = settings.htcondor.stranded_wait
        if words not in self._said:
            self._said.add(words)
            log.warning("%s; jobs are put on hold after %g h", words, wait / 3600)
        if since is None or now - since < wait:
            return
        reason = f"{words}; condor_release then sends this job again, as a new one"
        held = jobs.strand(url, account, Hold(reason, HoldCode.ACCOUNT, 0))
        if held:
            log.error("%d jobs are held: %s", held, shorten(words))
