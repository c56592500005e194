"""Abort, retire and lease of a batch, each by its id."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import BadRequest, BatchConflict
from boinc_gahp.remote import finding
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.remote.batch import Batch

#: Looks at a batch that was aborted while a submit_batch may have been running, in 3.75 s: the
#: largest that PHP takes as it ships needs 2.2 s (``web-rpcs.rst``, "Timings").
_LOOKS = 4
_BACKOFF = Backoff(0.25)
#: Later than the year 5138: such times are in milliseconds.
_LATEST = 1e11


def abort(batch: Batch) -> None:
    """Abort a batch, so that it lasts; one that is over stays as it is.

    An abort takes a retired batch back to the living ones, and makes a complete one look as if it
    had come to nothing (``web-rpcs.rst``, "Batch states"). A submit_batch that is still running
    undoes an abort when it ends ("submit_batch"): that can only be if the batch was seen before its
    end.
    """
    session = batch.project.session
    batch.refresh()
    if batch.state in (BatchState.COMPLETE, BatchState.RETIRED):
        return
    may_be_undone = batch.state is BatchState.INIT
    lasts = session.bridge.abort_once(batch.id, batch.name)
    for look in range(_LOOKS if may_be_undone or not lasts else 0):
        if not _BACKOFF.wait(look, stop=session.closing):
            break
        # With every job aborted it may be complete instead: that is an end as well.
        lasts = batch.refresh().is_over
        if not lasts:
            session.bridge.abort_once(batch.id, batch.name)
    if not batch.refresh().is_over:
        raise BatchConflict(
            f"batch {batch.name!r} (id {batch.id}) of {session.rpc.host} was aborted, and is "
            f"{batch.state.words} again: it is still being submitted somewhere; abort it again "
            "when that has ended"
        )


def abort_jobs(batch: Batch, jobs: Iterable[int | str]) -> None:
    """Abort jobs by their names or ids; those that are over stay as they are."""
    session = batch.project.session
    found = finding.jobs(session, batch.id, batch.name, jobs)
    names = [job.name for job in found if not job.state.is_over]
    if names:
        session.bridge.abort_jobs(names, remember=False)
    batch.refresh()


def retire(batch: Batch) -> None:
    """Retire a batch."""
    from boinc_gahp.remote.records import Records  # noqa: PLC0415  (not for lists of batches)

    batch.project.rpc.retire_batch(batch_id=batch.id)
    # Its name and those of its jobs stay taken, which the project itself can tell.
    Records(batch.project.session).forget(batch.name, batch.id)
    batch.refresh()


def extend(batch: Batch, until: float) -> None:
    """Set a batch's lease."""
    if math.isnan(until) or until <= time.time() or _LATEST < until < math.inf:
        raise BadRequest(
            f"the lease of batch {batch.name!r} cannot end at {until!r}: expected seconds since "
            f"1970, later than now ({time.time():.0f}); math.inf is for ever"
        )
    expire_time = 0.0 if until == math.inf else float(until)
    batch.project.rpc.set_expire_time(expire_time, batch_id=batch.id)
    batch.refresh()
