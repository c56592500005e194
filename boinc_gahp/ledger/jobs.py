"""The ledger of HTCondor's jobs, and of the batches in which they are sent."""

from __future__ import annotations

from boinc_gahp.ledger._batches import Batches
from boinc_gahp.ledger._progress import Progress
from boinc_gahp.ledger.listing import Listing
from boinc_gahp.ledger.problems import Problems


class JobLedger(Batches, Progress, Problems, Listing):
    """Everything known about the jobs; a daemon that starts relies on nothing else.

    Rows belong to an owner: a project (by any of its addresses) and an account
    (:attr:`Authenticator.account`, never the authenticator). Every method may be called from any
    thread, by several processes at once; its change is on the disk when it returns. A change that
    the state does not allow changes nothing, for example if the job was cancelled meanwhile.

    When the last live job of a batch fails or is cancelled, the batch ends: ``submitted`` and
    ``planned`` batches become ``ended``. ``sent`` ones become ``giving_up``, because their jobs may
    still appear on the project.

    Raises:
        LedgerError: by every method: the file cannot be read or written.
    """
