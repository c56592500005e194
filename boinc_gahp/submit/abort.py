"""Ends batches that are not wanted: empty ones are retired, others aborted until that is certain.

A submit_batch that is still running undoes an abort when it ends, and the remains of a killed PHP
may go on to make jobs in the aborted batch (``web-rpcs.rst``, "submit_batch"). So as long as one
may be running, a batch is aborted again :data:`ABORT_AGAIN` seconds later, until the project lists
as many jobs as the time before, or all jobs of the batch. That number is in the ledger, so that it
survives a restart.

A batch that somebody has retired is left alone if no submit_batch of it can be running: an abort
would make it active again (``web-rpcs.rst``, "Batch states"). Otherwise jobs may appear in it, or
may have: it is aborted like any other. Every batch is retired once its end is certain, and not
before: a retired batch looks as if none of its jobs ran.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from boinc_gahp.errors import NotFound, RpcError
from boinc_gahp.states import BatchState
from boinc_gahp.submit.query import find_batch

if TYPE_CHECKING:
    from boinc_gahp.ledger.jobs import JobLedger
    from boinc_gahp.ledger.ledger import Ledger
    from boinc_gahp.ledger.rows import BatchRow
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import BatchDetails
    from boinc_gahp.submit.context import Context

log = logging.getLogger("boinc_gahp.submit")

#: Seconds after an unclear submit_batch in which it may undo an abort; and seconds between aborts
#: until one lasts.
ABORT_AGAIN = 60.0
#: Seconds after which no part of a submit_batch can be running on the project any more.
_LINGERING = 900.0


def abort_empty(context: Context, name: str) -> None:
    """Retire a batch that no submit_batch was ever sent for, if there is one.

    Raises:
        RpcError: the project could not be reached, or does not let the account retire it.
    """
    try:
        details = find_batch(context.project, name)
    except NotFound:
        return
    if details.batch.name != name or details.jobs or details.batch.state is not BatchState.INIT:
        return  # another batch, or over already
    context.project.retire_batch(batch_id=details.batch.id)
    context.forget_batch(name)


def drop(context: Context, batch_id: int, name: str) -> None:
    """Retire a batch whose jobs were refused for good; jobs that were made before are aborted.

    Raises:
        RpcError: the project could not be reached, or does not let the account end it.
    """
    before = _query(context.project, batch_id, name)
    if before is None:
        return
    if before.jobs:
        context.project.abort_batch(batch_id=batch_id)
    context.project.retire_batch(batch_id=batch_id)
    context.forget_batch(name)


def abort_once(context: Context, batch_id: int, name: str) -> bool:
    """Abort a batch, in any state; return whether the project then says that it is aborted.

    If a submit_batch may be running, this is not final.

    Raises:
        RpcError: the project could not be reached, or does not let the account abort it.
    """
    before = _query(context.project, batch_id, name)
    return _abort(context, batch_id, name, before)[1]


def abort_until_certain(
    context: Context,
    batch: BatchRow,
    ledger: Ledger | JobLedger,
    *,
    njobs: int | None = None,
    is_clear: bool = False,
) -> bool:
    """Abort a batch, and put it off in the ledger unless none of its jobs runs or will appear.

    A batch that the project does not know, when asked twice, has no jobs; nor has one whose id is
    another batch's (the project was restored from a backup). A batch whose end is certain is
    retired, so that its files can be deleted; that is tried once.

    Args:
        context: the project.
        batch: the batch; if it has no id on the project, no submit_batch was ever sent for it.
        ledger: the ledger that has it.
        njobs: its total number of jobs; None: not known.
        is_clear: whether no submit_batch of it can be running.

    Returns:
        Whether its end is certain. If not, the ledger has when and why to go on.

    Raises:
        RpcError: the project could not be reached, or does not let the account abort it.
        LedgerError: the ledger cannot be written.
    """
    project, batch_id = context.project, batch.project_batch_id
    if batch_id is None:
        abort_empty(context, batch.name)
        return True
    if batch.sent is not None and time.time() > batch.sent + _LINGERING:
        is_clear = True
    before = _query(project, batch_id, batch.name)
    if is_clear and before is not None and before.batch.state is BatchState.RETIRED:
        return True
    after, is_aborted = _abort(context, batch_id, batch.name, before)
    njobs_listed = None
    trouble = "it was aborted, but the project does not show it as aborted"
    if is_aborted:
        njobs_listed = _count(after)
        may_be_all = is_clear or njobs_listed == njobs or after is None
        is_steady = njobs_listed == _count(before)
        if njobs_listed == batch.listed or (may_be_all and is_steady):
            if after is not None:
                _retire(context, batch_id)
            return True
        trouble = (
            f"it was aborted with {njobs_listed} jobs; boinc_gahp checks again whether it has more"
        )
    log.info("Batch %s (id %d): %s", batch.name, batch_id, trouble)
    ledger.postpone(batch.id, time.time() + ABORT_AGAIN, trouble, listed=njobs_listed)
    return False


def _abort(
    context: Context, batch_id: int, name: str, before: BatchDetails | None
) -> tuple[BatchDetails | None, bool]:
    """Abort a batch; return it as it is then, and whether the project says that it is aborted.

    A batch that it does not know, when asked twice, counts as aborted.
    """
    if before is not None:
        context.project.abort_batch(batch_id=batch_id)
    after = _query(context.project, batch_id, name)
    is_aborted = before is None if after is None else after.batch.state is BatchState.ABORTED
    if is_aborted:
        context.forget_batch(name)
    return after, is_aborted


def _retire(context: Context, batch_id: int) -> None:
    try:
        context.project.retire_batch(batch_id=batch_id)
    except RpcError as error:
        log.info("The aborted batch %d cannot be retired now: %s", batch_id, error)


def _query(project: WebRpcs, batch_id: int, name: str) -> BatchDetails | None:
    try:
        details = project.query_batch(batch_id=batch_id)
    except NotFound:
        return None
    return details if details.batch.name == name else None


def _count(details: BatchDetails | None) -> int:
    return 0 if details is None else len(details.jobs)
