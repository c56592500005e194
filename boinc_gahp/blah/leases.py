"""Renews the leases of batches, so that the project does not end them while HTCondor wants them."""

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

#: Seconds between looks for leases that run out, and the part of a short lease that does as well.
_EVERY = 60.0
_PART = 8.0
#: A lease is renewed when it has lost this much, in seconds; a short one at its half.
_USED = 86400.0


def look_every(lease: float) -> float:
    """Return seconds between looks whether leases of so many seconds have to be renewed."""
    return min(_EVERY, lease / _PART)


class Leases:
    """Renews leases, apart from all else that may go wrong; for one thread at a time."""

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

        One that the project does not renew keeps no other from it.

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
                # Its jobs are lost: what follows them finds out.
                log.warning("The lease of batch %s is not renewed: %s", batch.name, error)
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
