"""Batches that are not to be: empty ones are retired, others aborted so that it lasts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from boinc_gahp.bridge import naming
from boinc_gahp.errors import NotFound, RpcError
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from boinc_gahp.bridge.context import Context
    from boinc_gahp.rpc import BatchInfo, Project

log = logging.getLogger("boinc_gahp.bridge")


def withdraw_empty(context: Context, name: str) -> bool:
    """Retire a batch of this name that no submit_batch was ever sent for; return if there was one.

    Raises:
        RpcError: the project could not be asked, or does not let the account retire it.
    """
    try:
        details = naming.find(context.project, name)
    except NotFound:
        return False
    if details.batch.name != name or details.jobs or details.batch.state is not BatchState.INIT:
        return False  # not what is meant, or over already
    context.project.retire_batch(batch_id=details.batch.id)
    context.known.forget_batch(name)
    return True


def withdraw(context: Context, batch_id: int, name: str, *, retire: bool = True) -> bool:
    """Abort a batch; return whether the project then says that it is aborted.

    A submit_batch that is still running undoes an abort when it ends (``web-rpcs.rst``,
    "submit_batch"): only where none can be, ``True`` is the end of the batch. A batch that the
    project does not know, when asked twice, has no jobs; nor has one whose id is another batch's
    (the project was restored from a backup). One that was retired is aborted all the same: jobs may
    have come into it since.

    Args:
        context: the project.
        batch_id: the project's id of the batch.
        name: the batch's.
        retire: whether to retire it afterwards, so that its files can be deleted; that is tried
            once. Not before the end is certain: a retired batch looks as if no job of it ran.

    Raises:
        RpcError: the project could not be asked, or does not let the account abort it.
    """
    project = context.project
    was_there = _look(project, batch_id, name) is not None
    if was_there:
        project.abort_batch(batch_id=batch_id)
    batch = _look(project, batch_id, name)
    if batch is None:
        return not was_there
    if batch.state is not BatchState.ABORTED:
        return False
    context.known.forget_batch(name)
    if not retire:
        return True
    try:
        project.retire_batch(batch_id=batch_id)
    except RpcError as error:
        log.info("The aborted batch %d is not retired now: %s", batch_id, error)
    return True


def _look(project: Project, batch_id: int, name: str) -> BatchInfo | None:
    try:
        batch = project.query_batch(batch_id=batch_id).batch
    except NotFound:
        return None
    return batch if batch.name == name else None
