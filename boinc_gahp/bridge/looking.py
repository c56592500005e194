"""A batch by its id, for when its name will not do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.bridge.types import BatchLook
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    from boinc_gahp.bridge.context import Context

#: query_batch's words for what query_batch2 calls otherwise (``web-rpcs.rst``, "The RPCs").
_WORDS = {"queued": "UNSENT", "in_progress": "IN_PROGRESS", "error": "ERROR", "done": "DONE"}


def look_at(context: Context, batch_id: int) -> BatchLook:
    """Return all jobs of a batch with their statuses.

    query_batch2 takes names only, fails for all of them if it does not like one, and takes the
    oldest batch of a name, whosever it is (``web-rpcs.rst``, "create_batch"); this does not. It
    costs more.

    Raises:
        NotFound: the project has no such batch.
        RpcError: the project could not be asked, or the batch is another account's.
    """
    details = context.project.query_batch(batch_id=batch_id, get_job_details=True)
    # A job that was aborted when it had a result is done as well as in error.
    pairs = tuple(
        (
            job.name,
            "DONE" if job.canonical_instance_id else _WORDS.get(job.status, job.status.upper()),
        )
        for job in details.jobs
    )
    state = details.batch.state
    complete = state not in (BatchState.INIT, BatchState.UNKNOWN)
    return BatchLook(details.batch.name, complete, pairs)
