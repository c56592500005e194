"""How problems that persist are shown to people, and jobs that nobody can work on any more.

What is known about projects is in the ledger, because daemons live for minutes or for weeks.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from boinc_gahp.config.places import state_dir
from boinc_gahp.htcondor.owners import explain_unknown, owner_key
from boinc_gahp.htcondor.status_ad import HoldCode, suspended, with_reason
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.rows import Hold
from boinc_gahp.states import HTCondorState
from boinc_gahp.text import count, shorten

if TYPE_CHECKING:
    from boinc_gahp.config.settings import Settings
    from boinc_gahp.htcondor.owners import Owner
    from boinc_gahp.ledger.jobs import JobLedger
    from boinc_gahp.ledger.rows import JobRow

log = logging.getLogger("boinc_gahp.htcondor")

#: How many problems the daily lines in the log name.
_MAX_LOGGED = 20


class PersistentProblems:
    """Which jobs wait for something that has been wrong for an hour; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By owner, or by a batch's id.
        self._texts: dict[Owner | int | None, str] = {}
        self._shown: set[int] = set()
        self._logged: set[str] = set()

    def refresh(self, jobs: JobLedger, now: float) -> None:
        """Read the problems that persist from the ledger; once a day they are logged.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        problems = jobs.persistent_problems(now)
        with self._lock:
            self._texts = {
                owner_key(each.url, each.account)
                if each.reason == "project"
                else each.batch_id: f"{each.url}: {each.text}"
                for each in problems
                if each.reason in {"project", "batch"}
            }
        if problems and jobs.take_turn("troubles said", now):
            for each in problems[:_MAX_LOGGED]:
                hours = (now - each.since) / 3600
                log.warning("%s: %s (for %.0f h)", each.url, each.text, hours)
            if len(problems) > _MAX_LOGGED:
                more = len(problems) - _MAX_LOGGED
                log.warning("and %d more: boinc_gahp ledger status has them all", more)

    def answer_for(
        self, row: JobRow, answer: tuple[int, str], here: str | None, attempts: str = ""
    ) -> tuple[int, str]:
        """Return what HTCondor is told about a job: suspended, with the reason, if it has to wait.

        Args:
            row: the job.
            answer: what HTCondor is told if it does not have to wait.
            here: a problem of this submit node that the job waits for: HTCondor is told at once,
                because only people here can correct it. None: there is none.
            attempts: which attempts at jobs of its batch have failed; "": none are known.
        """
        with self._lock:
            text = here or self._texts.get(row.batch_id)
            text = text or self._texts.get(owner_key(row.project_url, row.account))
            if row.is_alive and (text or attempts):
                self._shown.add(row.id)
                return suspended(text) if text else with_reason(answer, attempts)
            # An earlier daemon may have told a reason: at the end it is always taken back.
            is_over = answer[0] in {HTCondorState.COMPLETED, HTCondorState.HELD}
            if not is_over and row.id not in self._shown:
                return answer
            if not row.is_alive:
                self._shown.discard(row.id)
        return with_reason(answer, None)

    def hold_unknown(
        self, jobs: JobLedger, settings: Settings, owner: tuple[str, str, str], now: float
    ) -> None:
        """Handle the jobs of an owner that the settings do not have: in the end they are held.

        Args:
            jobs: the ledger.
            settings: all settings, as they are now.
            owner: URL, account and the project's name, as the ledger has them.
            now: seconds since the epoch.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        url, account, name = owner
        if AccountLock(state_dir(settings), url, account).held_elsewhere():
            # Another daemon has other settings, or has not seen the change yet.
            jobs.set_unknown(url, account, False)
            return
        since = jobs.set_unknown(url, account, True)
        text = explain_unknown(url, account, name, settings)
        jobs.project_trouble(url, account, text)
        wait = settings.htcondor.unknown_project_wait
        if text not in self._logged:
            self._logged.add(text)
            log.warning("%s; jobs are put on hold after %g h", text, wait / 3600)
        if since is None or now - since < wait:
            return
        reason = f"{text}; condor_release then sends this job again, as a new one"
        held = jobs.hold_all_jobs(url, account, Hold(reason, HoldCode.ACCOUNT, 0))
        if held:
            log.error("%s on hold: %s", count(held, "job"), shorten(text))
