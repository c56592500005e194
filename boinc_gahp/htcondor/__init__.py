"""What each BLAH_* request does, for HTCondor 10 and later: job ads, batches, status.

``service`` answers the requests from the ledger alone; ``refusals`` stands before it, and has jobs
held if the settings or the ledger cannot be used. One ``manager`` for each account on a project, in
one of the user's daemons, does the rest: ``batching`` and ``sending`` make batches of waiting jobs
and submit them, ``rollback`` aborts and divides those that failed, ``following`` asks the
project for the states of jobs, ``fetching_queue`` and ``fetching`` fetch outputs, ``failures``
explains why there are none, ``cleanup`` aborts and retires; ``context`` has what they share.
``job_ad`` reads a job's ad into a ``description``, ``status_ad`` writes the answer, ``hold_codes``
has the codes. ``reconciling`` sends aborts and retirements without a daemon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.htcondor.attributes import AdRefused as AdRefused, Attributes as Attributes
    from boinc_gahp.htcondor.hold_codes import HoldCode as HoldCode
    from boinc_gahp.htcondor.owners import (
        explain_unknown as explain_unknown,
        known_owners as known_owners,
        owner_key as owner_key,
    )
    from boinc_gahp.htcondor.reconciling import (
        Reconciliation as Reconciliation,
        reconcile as reconcile,
    )
    from boinc_gahp.htcondor.refusals import Refusals as Refusals
    from boinc_gahp.htcondor.service import CANCEL_TIMEOUT as CANCEL_TIMEOUT, Service as Service

__getattr__, __dir__ = exports(
    __name__,
    {
        "attributes": ["AdRefused", "Attributes"],
        "hold_codes": ["HoldCode"],
        "owners": ["explain_unknown", "known_owners", "owner_key"],
        "reconciling": ["Reconciliation", "reconcile"],
        "refusals": ["Refusals"],
        "service": ["CANCEL_TIMEOUT", "Service"],
    },
)
