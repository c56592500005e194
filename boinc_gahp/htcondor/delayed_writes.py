"""What HTCondor has asked and was told, on its way into the ledger."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.ledger import JobLedger


class DelayedWrites:
    """Notes that are written into the ledger soon, or now and then; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[int, float] = {}
        self._told: set[int] = set()
        self._unwanted: set[str] = set()

    def asked(self, job_id: int) -> None:
        """Note that HTCondor asks about a job now."""
        with self._lock:
            self._asked[job_id] = time.time()

    def told(self, job_id: int) -> None:
        """Note that HTCondor was told a job's end."""
        with self._lock:
            self._told.add(job_id)

    def unwanted(self, job_id: str) -> None:
        """Note that HTCondor does not want a job, by its id for HTCondor."""
        with self._lock:
            self._unwanted.add(job_id)

    @property
    def all_unwanted(self) -> frozenset[str]:
        """The jobs that are still to be cancelled."""
        with self._lock:
            return frozenset(self._unwanted)

    def cancelled(self, job_id: str) -> None:
        """Note that an unwanted job is cancelled."""
        with self._lock:
            self._unwanted.discard(job_id)

    def write_told(self, jobs: JobLedger) -> None:
        """Write down which jobs' ends HTCondor was told; raises LedgerError."""
        with self._lock:
            told = set(self._told)
        if told:
            jobs.told(told)
            with self._lock:
                self._told -= told

    def write_asked(self, jobs: JobLedger) -> None:
        """Write down which jobs HTCondor has asked about; raises LedgerError."""
        with self._lock:
            asked, self._asked = self._asked, {}
        by_time: dict[float, list[int]] = {}
        for job_id, at in asked.items():
            # Whole seconds are more than enough, and save many changes of the ledger.
            by_time.setdefault(float(int(at)), []).append(job_id)
        for at, job_ids in by_time.items():
            jobs.asked(job_ids, at)
