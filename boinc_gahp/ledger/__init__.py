"""What must outlive the process, on SQLite: debts to projects, and the jobs that were aborted."""

from boinc_gahp.ledger.filesystem import network_filesystem
from boinc_gahp.ledger.ledger import Debt, Ledger

__all__ = ["Debt", "Ledger", "network_filesystem"]
