"""The ledger of jobs that HTCondor has handed over, and of the batches that they travel in."""

from __future__ import annotations

from boinc_gahp.ledger.batches import Batches
from boinc_gahp.ledger.listing import Listing
from boinc_gahp.ledger.moving import Moving
from boinc_gahp.ledger.progress import Progress
from boinc_gahp.ledger.rows import (
    ALIVE,
    STATES,
    BatchRow,
    BatchState,
    Hold,
    JobRow,
    NewJob,
    OnProject,
    OwedAbort,
    ProgramFailure,
    State,
    Tally,
    Trouble,
    Waiting,
)
from boinc_gahp.ledger.troubles import Troubles

__all__ = [
    "ALIVE",
    "STATES",
    "BatchRow",
    "BatchState",
    "Hold",
    "JobLedger",
    "JobRow",
    "NewJob",
    "OnProject",
    "OwedAbort",
    "ProgramFailure",
    "State",
    "Tally",
    "Trouble",
    "Waiting",
]


class JobLedger(Batches, Progress, Troubles, Moving, Listing):
    """All that is known of the jobs; nothing else counts when a daemon starts.

    Rows belong to an owner: a project (by any of its addresses) and an account
    (:attr:`Authenticator.account`, never the authenticator). Every method may be called from any
    thread, by several processes at once; what it changed is on the disk when it returns. A change
    that a state does not allow (because the job was cancelled meanwhile, for one) changes nothing.

    A batch whose last job alive fails or is cancelled ends by itself: ``submitted`` and
    ``planned`` ones become ``ended``, ``sent`` ones ``giving_up``, since their jobs may still come
    to be on the project.

    Raises:
        LedgerError: by every method: the file cannot be read or written.
    """
