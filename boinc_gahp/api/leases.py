"""Leases of people's batches, renewed while a program waits for a batch or fetches from it.

When a lease is over, the project aborts and retires the batch and deletes its outputs
(``web-rpcs.rst``, "Batch states").
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.errors import GahpError
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from boinc_gahp.api.batch import Batch
    from boinc_gahp.rpc import WebRpcs as Rpc

log = logging.getLogger("boinc_gahp.api")

#: Seconds between two renewals of a lease.
_OFTEN = 86400.0
#: Seconds until a failed renewal is repeated, and the limit for one renewal, so that it does not
#: keep a waiting program from looking at its batch.
_PAUSE = 300.0
_PATIENCE = 5.0
_ENDED = (BatchState.ABORTED, BatchState.RETIRED)


def renew(batch: Batch, rpc: Rpc | None = None, *, stale: bool = False) -> None:
    """Extend a batch's lease to ``[jobs] batch_lease`` from now; never shortens it.

    If the project cannot be asked, the renewal is tried again when the batch is asked about next.

    Args:
        batch: its lease must be as the project said just now.
        rpc: the RPCs to use, perhaps with a deadline; None: the project's.
        stale: whether the batch's data may be old: then the project is asked first.
    """
    now = time.monotonic()
    try:
        if now < batch.renew_from or not _is_due(batch):
            return
        if stale and not _is_due(batch.refresh()):
            return
        until = float(int(time.time() + _lease_seconds(batch)))
        rpc = (rpc or batch.project.rpc).until(now + _PATIENCE)
        rpc.set_expire_time(until, batch_id=batch.id)
    except GahpError as error:
        batch.renew_from = now + _PAUSE
        log.warning("Cannot renew the lease of batch %d (%s): %s", batch.id, batch.name, error)
    else:
        batch.info = replace(batch.info, expire_time=until)


def _lease_seconds(batch: Batch) -> float:
    return batch.project.session.settings.jobs.batch_lease


def _is_due(batch: Batch) -> bool:
    end = batch.expire_time
    if end is None or batch.gone or batch.trouble is not None or batch.state in _ENDED:
        return False
    seconds = _lease_seconds(batch)
    return end < time.time() + seconds - min(_OFTEN, seconds / 4)
