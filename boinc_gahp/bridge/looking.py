"""A batch by its id, for when its name will not do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.bridge.types import BatchLook
from boinc_gahp.states import STATUS_WORDS, BatchState

if TYPE_CHECKING:
    from boinc_gahp.bridge.context import Context


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
    pairs = tuple(
        (job.name, STATUS_WORDS.get(job.state, job.status.upper())) for job in details.jobs
    )
    state = details.batch.state
    complete = state not in (BatchState.INIT, BatchState.UNKNOWN)
    return BatchLook(details.batch.name, complete, pairs)
