"""Renews the leases of batches, so that the project keeps them while HTCondor wants them."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from boinc_gahp.errors import NotFound, RpcError
from boinc_gahp.htcondor._periodic_tasks import PeriodicTask
from boinc_gahp.htcondor._retry_times import going
from boinc_gahp.submit.control import set_lease

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.htcondor._context import AccountContext

log = logging.getLogger("boinc_gahp.htcondor")

#: Seconds between checks for leases that run out; with short leases, how often one is checked.
_EVERY = 60.0
_PART = 8.0
#: A lease is renewed after this many seconds of it; a short one after half of it.
_USED = 86400.0


def check_interval(lease: float) -> float:
    """Return seconds between checks whether leases of ``lease`` seconds have to be renewed."""
    return min(_EVERY, lease / _PART)


def lease_task(context: AccountContext) -> PeriodicTask:
    """Return the task that renews leases, even if other work fails."""
    return PeriodicTask(
        "lease",
        lambda now: context.pauses.wait(None, now),
        partial(_renew, context),
        lambda: check_interval(context.htcondor.lease),
    )


def _renew(context: AccountContext, now: float, goes_on: Callable[[], bool]) -> None:
    """Renew the leases of batches with jobs that HTCondor has asked about recently.

    A lease that the project does not renew does not delay the others.

    Raises:
        LedgerError: the ledger cannot be read or written.
    """
    clock = going(now)
    lease = context.htcondor.lease
    ahead = lease - min(_USED, lease / 2)
    batches = context.jobs.leases(context.url, context.account, now, ahead, lease)
    for batch in batches:
        key = ("lease", batch.id)
        if not goes_on():
            return
        if context.pauses.wait(key, now):
            continue
        try:
            set_lease(context.project, batch.name, now + lease)
        except NotFound as error:
            # Its jobs are lost: the follower finds that out.
            log.warning("The lease of batch %s cannot be renewed: %s", batch.name, error)
        except RpcError as error:
            if context.pauses.is_of_project(error, clock()):
                return
            log.warning("The lease of batch %s is still to be renewed: %s", batch.name, error)
            context.pauses.later(key, clock())
            continue
        else:
            context.pauses.succeeded(key)
        context.jobs.leased(batch.id, now + lease)
