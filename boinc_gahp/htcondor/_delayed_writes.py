"""What HTCondor has polled, cancelled and was told, until it is written into the ledger."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.ledger.jobs import JobLedger


class DelayedWrites:
    """Notes that are written into the ledger soon, or now and then; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._polled: dict[int, float] = {}
        self._reported: set[int] = set()
        self._cancels: set[str] = set()

    def htcondor_polled(self, job_id: int) -> None:
        """Note that HTCondor asks about a job now."""
        with self._lock:
            self._polled[job_id] = time.time()

    def end_reported(self, job_id: int) -> None:
        """Note that HTCondor was told a job's end."""
        with self._lock:
            self._reported.add(job_id)

    def cancel_later(self, job_id: str) -> None:
        """Note that HTCondor does not want a job, by its id for HTCondor."""
        with self._lock:
            self._cancels.add(job_id)

    @property
    def pending_cancels(self) -> frozenset[str]:
        """The jobs that are still to be cancelled."""
        with self._lock:
            return frozenset(self._cancels)

    def cancel_done(self, job_id: str) -> None:
        """Note that an unwanted job is cancelled."""
        with self._lock:
            self._cancels.discard(job_id)

    def write_reported(self, jobs: JobLedger) -> None:
        """Write down which jobs' ends HTCondor was told; raises LedgerError."""
        with self._lock:
            reported = set(self._reported)
        if reported:
            jobs.end_reported(reported)
            with self._lock:
                self._reported -= reported

    def write_polled(self, jobs: JobLedger) -> None:
        """Write down which jobs HTCondor has asked about; raises LedgerError."""
        with self._lock:
            polled, self._polled = self._polled, {}
        jobs.htcondor_polled(polled)
