"""HTCondor's requests if nothing can be done for jobs: no settings, no authenticator, no ledger.

A ping that fails leaves all jobs of the user idle, and nobody is told why
(``gridmanager-batch.rst``, "Life of a job"). So pings succeed, and a job that cannot be accepted is
held: it gets an id as if it had been accepted, and its first status tells HTCondor the reason,
which is the only way to set a HoldReasonCode. Nothing is stored: HTCondor cancels the id when it
holds the job, and submits the job again when it is released.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING

from boinc_gahp.config.settings import HTCondor
from boinc_gahp.errors import ConfigError, GahpError, LedgerError
from boinc_gahp.htcondor.service import CANCEL_TIMEOUT
from boinc_gahp.htcondor.status_ad import UNTIL_MENDED, HoldCode, held_ad, suspended

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.htcondor.service import Service

log = logging.getLogger("boinc_gahp.htcondor")

#: Refused jobs whose reasons are kept for HTCondor's first status request; it has 1000 at a time
#: (``gridmanager-batch.rst``, "Concurrency").
MAX_REFUSED = 10_000
#: Seconds between attempts to write a cancel into the ledger.
RETRY_AFTER = 1.0

_PREFIX = "boinc/refused."


class Refusals:
    """The work of a gridmanager's BLAH_* commands; thread-safe. See the module.

    Args:
        service: returns the service, and makes it if need be; raises ConfigError if it cannot.
        clock: seconds, as :func:`time.monotonic`.
    """

    def __init__(
        self, service: Callable[[], Service], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._service = service
        self._clock = clock
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        self._token = os.urandom(4).hex()
        self._number = 0
        self._last_message = ""
        self._broken_since: float | None = None
        self._closing = threading.Event()

    def ping(self) -> None:
        """Start work on jobs that were accepted before, if possible; never fails."""
        try:
            self._service().ping()
        except (ConfigError, LedgerError) as error:
            self._log(str(error))

    def submit(self, ad: str) -> str:
        """Return the id of a job that was accepted, or that is to be held.

        Raises:
            GahpError: there is something wrong with the job itself.
        """
        try:
            return self._service().submit(ad)
        except (ConfigError, LedgerError) as error:
            self._log(str(error))
            reason = _hold_reason(error)
        with self._lock:
            self._number += 1
            job_id = f"{_PREFIX}{self._token}.{self._number}"
            self._reasons[job_id] = reason
            if len(self._reasons) > MAX_REFUSED:
                del self._reasons[next(iter(self._reasons))]
        return job_id

    def status(self, job_id: str) -> tuple[int, str]:
        """Return a job's status as HTCondor numbers it, and the status ad.

        While the settings are broken, the status of jobs that were accepted before is not known.
        They go on at the project, and need no release when the settings are corrected: so HTCondor
        is told that they are suspended, and why (:func:`boinc_gahp.htcondor.status_ad.suspended`).
        After the default ``unknown_project_wait`` they are held.

        Raises:
            ConfigError: the settings have been broken for that long.
            GahpError: as :meth:`boinc_gahp.htcondor.service.Service.status` does.
        """
        if job_id.startswith(_PREFIX):
            return held_ad(self._reason(job_id), HoldCode.ACCOUNT, 0)
        try:
            service = self._service()
        except ConfigError as error:
            self._log(str(error))
            now = self._clock()
            if self._broken_since is None:
                self._broken_since = now
            if now - self._broken_since < HTCondor().unknown_project_wait:
                return suspended(str(error))
            raise
        self._broken_since = None
        return service.status(job_id)

    def cancel(self, job_id: str) -> None:
        """Note that HTCondor does not want the job; waits for minutes until that is possible.

        HTCondor forgets the job after any answer (``gridmanager-batch.rst``, "Life of a
        job"), so this is the only chance to spare volunteers the work.

        Raises:
            ConfigError, LedgerError: it could not be noted.
        """
        if job_id.startswith(_PREFIX):
            with self._lock:
                self._reasons.pop(job_id, None)
            return
        deadline = self._clock() + CANCEL_TIMEOUT
        while True:
            try:
                self._service().cancel(job_id)
            except (ConfigError, LedgerError) as error:
                self._log(str(error))
                if self._closing.wait(RETRY_AFTER):
                    raise
                if self._clock() > deadline:
                    log.error(
                        "Job %s is not aborted: it ends with its batch",
                        job_id,
                    )
                    raise
            else:
                return

    def end_reported(self, job_id: str) -> None:
        """Note that the line with a job's status 4 or 5 was written completely; returns at once."""
        if not job_id.startswith(_PREFIX):
            self._service().end_reported(job_id)

    def close(self) -> None:
        """End the waits of cancels."""
        self._closing.set()

    def _reason(self, job_id: str) -> str:
        """Return the HoldReason of a job, also of one that an earlier daemon has refused."""
        with self._lock:
            reason = self._reasons.get(job_id)
        if reason is not None:
            return reason
        try:
            self._service().ping()
        except (ConfigError, LedgerError) as error:
            return _hold_reason(error)
        return _hold_reason(
            ConfigError(
                "boinc_gahp could not accept this job when HTCondor submitted it, because of its "
                "settings or its state directory; run boinc_gahp check to see whether they are "
                "still wrong"
            )
        )

    def _log(self, text: str) -> None:
        level = logging.DEBUG if text == self._last_message else logging.ERROR
        self._last_message = text
        log.log(level, "boinc_gahp cannot work on HTCondor's jobs: %s", text)


def _hold_reason(error: GahpError) -> str:
    return error.with_code(UNTIL_MENDED.format(error=error))
