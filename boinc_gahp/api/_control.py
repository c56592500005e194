"""Aborts, retires and extends batches, and renews their leases; the project is given their ids."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.api import finding
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import BadRequest, BatchConflict, GahpError
from boinc_gahp.states import BatchState
from boinc_gahp.submit import control
from boinc_gahp.submit.abort import abort_once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.submission import Submitted
    from boinc_gahp.rpc.client import WebRpcs as Rpc


log = logging.getLogger("boinc_gahp.api")

B = TypeVar("B", bound="KnownBatch")

#: Seconds between two renewals of a lease.
_OFTEN = 86400.0
#: Seconds until a failed renewal is repeated, and the limit for one renewal, so that it does not
#: keep a waiting program from looking at its batch.
_PAUSE = 300.0
_TIMEOUT = 5.0
_ENDED = (BatchState.ABORTED, BatchState.RETIRED)


def submitted(batch: B, sent: Submitted) -> B:
    """Note on a handle what a submit found; the lease of a batch that was there is renewed."""
    batch.existed, batch.compared = sent.existed, sent.compared
    if batch.existed:
        renew(batch)
    return batch


def renew(batch: KnownBatch, rpc: Rpc | None = None, *, stale: bool = False) -> None:
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
        if stale and not _is_due(refresh(batch)):
            return
        until = float(int(time.time() + _lease_seconds(batch)))
        rpc = (rpc or batch.session.rpc).until(now + _TIMEOUT)
        rpc.set_expire_time(until, batch_id=batch.id)
    except GahpError as error:
        batch.renew_from, batch.lease_trouble = now + _PAUSE, error
        log.warning("Cannot renew the lease of batch %d (%s): %s", batch.id, batch.name, error)
    else:
        batch.info, batch.lease_trouble = replace(batch.info, expire_time=until), None


def refresh(batch: B) -> B:
    """Ask the project about a batch; return it."""
    batch.see(finding.by_id(batch.session, batch.id, batch.njobs))
    return batch


def _lease_seconds(batch: KnownBatch) -> float:
    return batch.session.settings.jobs.batch_lease


def _is_due(batch: KnownBatch) -> bool:
    end = batch.expire_time
    if end is None or batch.gone or batch.trouble is not None or batch.state in _ENDED:
        return False
    seconds = _lease_seconds(batch)
    return end < time.time() + seconds - min(_OFTEN, seconds / 4)


#: How often to check an aborted batch, in 3.75 s, while a submit_batch may still be running: the
#: largest that PHP takes by default needs 2.2 s (``web-rpcs.rst``, "Timings").
_MAX_CHECKS = 4
_BACKOFF = Backoff(0.25)
#: A time after the year 5138 must be in milliseconds.
_LATEST = 1e11


def abort(batch: KnownBatch) -> None:
    """Abort a batch, and make sure that it stays aborted; one that is over does not change.

    Aborting a retired batch would bring it back, and aborting a complete one would make it look as
    if it had failed (``web-rpcs.rst``, "Batch states"). A submit_batch that is still running undoes
    the abort when it ends ("submit_batch"); this is possible only if the batch was seen before the
    submit ended.
    """
    session = batch.session
    refresh(batch)
    if batch.state in (BatchState.COMPLETE, BatchState.RETIRED):
        return
    may_be_undone = batch.state is BatchState.INIT
    lasts = abort_once(session.context, batch.id, batch.name)
    for attempt in range(_MAX_CHECKS if may_be_undone or not lasts else 0):
        if not _BACKOFF.wait(attempt, stop=session.closing):
            break
        # With every job aborted it may be complete instead: then it is over as well.
        lasts = refresh(batch).is_over
        if not lasts:
            abort_once(session.context, batch.id, batch.name)
    if not refresh(batch).is_over:
        raise BatchConflict(
            f"{batch.called} was aborted, and is {batch.state.words} again: another process is "
            "still submitting it; abort it again when that has ended"
        )


def abort_jobs(batch: KnownBatch, jobs: Iterable[int | str]) -> None:
    """Abort jobs by their names or ids; jobs that are over do not change."""
    names = [job.name for job in finding.find_jobs(batch, jobs) if not job.state.is_over]
    if names:
        control.abort_jobs(batch.session.context, names, remember=False)
    refresh(batch)


def retire(batch: KnownBatch) -> None:
    """Retire a batch."""
    from boinc_gahp.api.manifest_files import Manifests  # noqa: PLC0415  (not for lists of batches)

    batch.session.rpc.retire_batch(batch_id=batch.id)
    # The project keeps the batch's and jobs' names taken, and can say so itself.
    Manifests(batch.session).forget(batch.name, batch.id)
    refresh(batch)


def extend(batch: KnownBatch, until: float) -> None:
    """Set a batch's lease."""
    if math.isnan(until) or until <= time.time() or _LATEST < until < math.inf:
        raise BadRequest(
            f"the lease of batch {batch.name!r} cannot end at {until!r}: expected seconds since "
            f"1970, later than now ({time.time():.0f}); math.inf sets no end"
        )
    expire_time = 0.0 if until == math.inf else float(until)
    batch.session.rpc.set_expire_time(expire_time, batch_id=batch.id)
    refresh(batch)
