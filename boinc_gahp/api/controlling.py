"""Abort, retire and extend a batch; the project is always given its id."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from boinc_gahp.api import finding
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import BadRequest, BatchConflict
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.api.batch import Batch

#: How often to check an aborted batch, in 3.75 s, while a submit_batch may still be running: the
#: largest that PHP takes by default needs 2.2 s (``web-rpcs.rst``, "Timings").
_MAX_CHECKS = 4
_BACKOFF = Backoff(0.25)
#: A time after the year 5138 must be in milliseconds.
_LATEST = 1e11


def abort(batch: Batch) -> None:
    """Abort a batch, and make sure that it stays aborted; one that is over does not change.

    Aborting a retired batch would bring it back, and aborting a complete one would make it look as
    if it had failed (``web-rpcs.rst``, "Batch states"). A submit_batch that is still running undoes
    the abort when it ends ("submit_batch"); this is possible only if the batch was seen before the
    submit ended.
    """
    session = batch.project.session
    batch.refresh()
    if batch.state in (BatchState.COMPLETE, BatchState.RETIRED):
        return
    may_be_undone = batch.state is BatchState.INIT
    lasts = session.bridge.abort_once(batch.id, batch.name)
    for attempt in range(_MAX_CHECKS if may_be_undone or not lasts else 0):
        if not _BACKOFF.wait(attempt, stop=session.closing):
            break
        # With every job aborted it may be complete instead: then it is over as well.
        lasts = batch.refresh().is_over
        if not lasts:
            session.bridge.abort_once(batch.id, batch.name)
    if not batch.refresh().is_over:
        raise BatchConflict(
            f"batch {batch.name!r} (id {batch.id}) of {session.rpc.host} was aborted, and is "
            f"{batch.state.words} again: another process is still submitting it; abort it again "
            "when that has ended"
        )


def abort_jobs(batch: Batch, jobs: Iterable[int | str]) -> None:
    """Abort jobs by their names or ids; jobs that are over do not change."""
    session = batch.project.session
    found = finding.find_jobs(session, batch.id, batch.name, jobs)
    names = [job.name for job in found if not job.state.is_over]
    if names:
        session.bridge.abort_jobs(names, remember=False)
    batch.refresh()


def retire(batch: Batch) -> None:
    """Retire a batch."""
    from boinc_gahp.api.records import Records  # noqa: PLC0415  (not for lists of batches)

    batch.project.rpc.retire_batch(batch_id=batch.id)
    # The project keeps the batch's and jobs' names taken, and can say so itself.
    Records(batch.project.session).forget(batch.name, batch.id)
    batch.refresh()


def extend(batch: Batch, until: float) -> None:
    """Set a batch's lease."""
    if math.isnan(until) or until <= time.time() or _LATEST < until < math.inf:
        raise BadRequest(
            f"the lease of batch {batch.name!r} cannot end at {until!r}: expected seconds since "
            f"1970, later than now ({time.time():.0f}); math.inf sets no end"
        )
    expire_time = 0.0 if until == math.inf else float(until)
    batch.project.rpc.set_expire_time(expire_time, batch_id=batch.id)
    batch.refresh()
