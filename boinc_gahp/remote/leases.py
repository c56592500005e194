"""Leases of people's batches: they are renewed while somebody waits for a batch or fetches from it.

A project aborts and retires a batch whose lease is over, and deletes its outputs then
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
    from boinc_gahp.remote.batch import Batch
    from boinc_gahp.rpc import WebRpcs as Rpc

log = logging.getLogger("boinc_gahp.remote")

#: Seconds for which a lease is left alone once it was renewed.
_OFTEN = 86400.0
#: Seconds until a renewal that failed is tried again, and that one may take, so that whoever waits
#: for a batch is not kept from looking at it.
_PAUSE = 300.0
_PATIENCE = 5.0
_ENDED = (BatchState.ABORTED, BatchState.RETIRED)


def renew(batch: Batch, rpc: Rpc | None = None, *, stale: bool = False) -> None:
    """Keep a batch for ``[jobs] batch_lease`` from now; one that is kept for longer stays so.

    A project that cannot be asked is asked again when the batch is looked at next.

    Args:
        batch: what it says of its lease has to be what the project said just now.
        rpc: the RPCs to go through, which may have a deadline of their own; None: the project's.
        stale: whether that may be old: then the project is asked before anything is renewed.
    """
    now = time.monotonic()
    try:
        if now < batch.renew_from or not _is_due(batch):
            return
        if stale and not _is_due(batch.refresh()):
            return
        until = float(int(time.time() + _kept(batch)))
        rpc = (rpc or batch.project.rpc).until(now + _PATIENCE)
        rpc.set_expire_time(until, batch_id=batch.id)
    except GahpError as error:
        batch.renew_from = now + _PAUSE
        log.warning("The lease of batch %d (%s) is not renewed: %s", batch.id, batch.name, error)
    else:
        batch.info = replace(batch.info, expire_time=until)


def _kept(batch: Batch) -> float:
    return batch.project.session.settings.jobs.batch_lease


def _is_due(batch: Batch) -> bool:
    end = batch.expire_time
    if end is None or batch.gone or batch.trouble is not None or batch.state in _ENDED:
        return False
    kept = _kept(batch)
    return end < time.time() + kept - min(_OFTEN, kept / 4)
