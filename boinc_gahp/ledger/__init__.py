"""Data that must outlive the process, in SQLite: HTCondor's jobs, batches, aborted jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.ledger.account_lock import AccountLock as AccountLock
    from boinc_gahp.ledger.filesystem import network_filesystem as network_filesystem
    from boinc_gahp.ledger.jobs import JobLedger as JobLedger
    from boinc_gahp.ledger.ledger import Ledger as Ledger
    from boinc_gahp.ledger.listing import all_pending_aborts as all_pending_aborts
    from boinc_gahp.ledger.opening import text as text
    from boinc_gahp.ledger.overview import overviews as overviews
    from boinc_gahp.ledger.problems import (
        PERSISTENT_AFTER as PERSISTENT_AFTER,
        Problem as Problem,
    )
    from boinc_gahp.ledger.rows import (
        ALIVE as ALIVE,
        STATES as STATES,
        BatchRow as BatchRow,
        Hold as Hold,
        JobRow as JobRow,
        NewJob as NewJob,
        PendingAbort as PendingAbort,
        ProgramFailure as ProgramFailure,
        State as State,
        Trouble as Trouble,
        Waiting as Waiting,
    )
    from boinc_gahp.ledger.splitting import BatchPart as BatchPart, BatchSplitter as BatchSplitter
    from boinc_gahp.ledger.store import LOG_LIMIT as LOG_LIMIT, Store as Store
    from boinc_gahp.ledger.upkeep import drop_unneeded as drop_unneeded

__getattr__, __dir__ = exports(
    __name__,
    {
        "account_lock": ["AccountLock"],
        "filesystem": ["network_filesystem"],
        "jobs": ["JobLedger"],
        "ledger": ["Ledger"],
        "listing": ["all_pending_aborts"],
        "opening": ["text"],
        "overview": ["overviews"],
        "rows": [
            "ALIVE",
            "BatchRow",
            "Hold",
            "JobRow",
            "NewJob",
            "PendingAbort",
            "ProgramFailure",
            "STATES",
            "State",
            "Trouble",
            "Waiting",
        ],
        "splitting": ["BatchPart", "BatchSplitter"],
        "store": ["LOG_LIMIT", "Store"],
        "problems": ["PERSISTENT_AFTER", "Problem"],
        "upkeep": ["drop_unneeded"],
    },
)
