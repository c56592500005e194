"""Data that must outlive the process, in SQLite: HTCondor's jobs, batches, aborted jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.ledger.account_lock import AccountLock as AccountLock
    from boinc_gahp.ledger.filesystem import network_filesystem as network_filesystem
    from boinc_gahp.ledger.jobs import (
        ALIVE as ALIVE,
        BatchRow as BatchRow,
        Hold as Hold,
        JobLedger as JobLedger,
        JobRow as JobRow,
        NewJob as NewJob,
        State as State,
        Waiting as Waiting,
    )
    from boinc_gahp.ledger.ledger import Ledger as Ledger
    from boinc_gahp.ledger.listing import all_pending_aborts as all_pending_aborts
    from boinc_gahp.ledger.opening import text as text
    from boinc_gahp.ledger.overview import overviews as overviews
    from boinc_gahp.ledger.problems import (
        PERSISTENT_AFTER as PERSISTENT_AFTER,
        Problem as Problem,
    )
    from boinc_gahp.ledger.rows import (
        STATES as STATES,
        PendingAbort as PendingAbort,
        ProgramFailure as ProgramFailure,
        Trouble as Trouble,
    )
    from boinc_gahp.ledger.splitting import BatchPart as BatchPart, BatchSplitter as BatchSplitter
    from boinc_gahp.ledger.store import LOG_LIMIT as LOG_LIMIT, Store as Store
    from boinc_gahp.ledger.upkeep import drop_unneeded as drop_unneeded

__getattr__, __dir__ = exports(
    __name__,
    {
        "account_lock": ["AccountLock"],
        "filesystem": ["network_filesystem"],
        "jobs": [
            "ALIVE",
            "BatchRow",
            "Hold",
            "JobLedger",
            "JobRow",
            "NewJob",
            "State",
            "Waiting",
        ],
        "ledger": ["Ledger"],
        "listing": ["all_pending_aborts"],
        "opening": ["text"],
        "overview": ["overviews"],
        "rows": ["PendingAbort", "ProgramFailure", "STATES", "Trouble"],
        "splitting": ["BatchPart", "BatchSplitter"],
        "store": ["LOG_LIMIT", "Store"],
        "problems": ["PERSISTENT_AFTER", "Problem"],
        "upkeep": ["drop_unneeded"],
    },
)
