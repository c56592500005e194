"""Renews the leases of batches, so that the project keeps them while HTCondor wants them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from boinc_gahp.blah.duties import Duty
from boinc_gahp.blah.patience import going, is_ahead
from boinc_gahp.errors import NotFound, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.blah.kept import Kept
    from boinc_gahp.ledger.jobs import BatchRow

log = logging.getLogger("boinc_gahp.blah")

#: Seconds between looks for leases that run out; with short leases, how often one is looked at.
_EVERY = 60.0
_PART = 8.0
#: A lease is renewed after this many seconds of it; a short one after half of it.
_USED = 86400.0


def look_every(lease: float) -> float:
    """Return seconds between checks whether leases of ``lease`` seconds have to be renewed."""
    return min(_EVERY, lease / _PART)


class Leases:
    """Renews leases, even if other work fails; for one thread at a time."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._next = 0.0
        self._failing: set[tuple[str, int]] = set()
        self.duty = Duty("lease", self.due, self.pay)

    def due(self, now: float) -> float:
        """Return when to look again."""
        every = look_every(self._kept.htcondor.lease)
        ahead = self._next if is_ahead(self._next, now, every) else 0.0
        return max(ahead, self._kept.pauses.wait(None, now))

    def pay(self, now: float, goes_on: Callable[[], bool]) -> None:
        """Renew the leases of batches with jobs that HTCondor has asked about lately.

        A lease that the project does not renew does not delay the others.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        kept, clock = self._kept, going(now)
        lease = kept.htcondor.lease
        self._next = now + look_every(lease)
        ahead = lease - min(_USED, lease / 2)
        batches = kept.jobs.leases(kept.url, kept.account, now, ahead, lease)
        for gone in self._failing - {_lease_of(batch) for batch in batches}:
            kept.pauses.forget(gone)
            self._failing.discard(gone)
        for batch in batches:
            key = _lease_of(batch)
            if not goes_on():
                return
            if kept.pauses.wait(key, now):
                continue
            try:
                kept.bridge.set_lease(batch.name, now + lease)
            except NotFound as error:
                # Its jobs are lost: the follower finds that out.
                log.warning("The lease of batch %s cannot be renewed: %s", batch.name, error)
            except RpcError as error:
                if kept.pauses.is_of_project(error, clock()):
                    return
                log.warning("The lease of batch %s is still to be renewed: %s", batch.name, error)
                kept.pauses.later(key, clock())
                self._failing.add(key)
                continue
            else:
                kept.pauses.succeeded(key)
            kept.jobs.leased(batch.id, now + lease)


def _lease_of(batch: BatchRow) -> tuple[str, int]:
    return "lease", batch.id
