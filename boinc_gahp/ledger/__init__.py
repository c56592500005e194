"""Data that must outlive the process, in SQLite: HTCondor's jobs, batches, aborted jobs."""

from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.filesystem import network_filesystem
from boinc_gahp.ledger.jobs import (
    ALIVE,
    BatchRow,
    Hold,
    JobLedger,
    JobRow,
    NewJob,
    State,
    Tally,
    Waiting,
)
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.ledger.store import Store
from boinc_gahp.ledger.upkeep import drop_unneeded

__all__ = [
    "ALIVE",
    "AccountLock",
    "BatchRow",
    "Hold",
    "JobLedger",
    "JobRow",
    "Ledger",
    "NewJob",
    "State",
    "Store",
    "Tally",
    "Waiting",
    "drop_unneeded",
    "network_filesystem",
]
