"""Looks at a batch on the project: by its id, or by a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.bridge import naming
from boinc_gahp.bridge.types import BatchLook
from boinc_gahp.errors import BatchConflict, NotFound, NotOwner
from boinc_gahp.states import STATUS_WORDS, BatchState
from boinc_gahp.text import count

if TYPE_CHECKING:
    from boinc_gahp.bridge.context import Context
    from boinc_gahp.bridge.types import SubmitRequest
    from boinc_gahp.rpc import BatchDetails, WebRpcs


def look_at(context: Context, batch_id: int) -> BatchLook:
    """Return all jobs of a batch with their statuses.

    query_batch2 only takes names, fails for all of them if it refuses one, and takes the oldest
    batch of a name, of any account (``web-rpcs.rst``, "create_batch"). This function does not have
    these faults, but costs more.

    Raises:
        NotFound: the project has no such batch.
        RpcError: the project could not be reached, or the batch is another account's.
    """
    details = context.project.query_batch(batch_id=batch_id, get_job_details=True)
    pairs = tuple(
        (job.name, STATUS_WORDS.get(job.state, job.status.upper())) for job in details.jobs
    )
    state = details.batch.state
    complete = state not in (BatchState.INIT, BatchState.UNKNOWN)
    return BatchLook(details.batch.name, complete, pairs)


def look_up(project: WebRpcs, request: SubmitRequest) -> BatchDetails | None:
    """Return the batch that the project finds under the request's name, or None.

    Raises:
        BatchConflict: by its name it is another batch.
        RpcError: the project could not be reached.
    """
    name = request.batch_name
    try:
        details = naming.find(project, name)
    except NotFound:
        return None
    except NotOwner as error:
        if request.name_is_given:
            return None
        raise BatchConflict(
            f"{project.host} has a batch named {name!r} that belongs to another account: choose "
            "another name"
        ) from error
    if details.batch.name != name:
        raise BatchConflict(
            f"{project.host} finds the batch {details.batch.name!r} under the name {name!r}, since "
            "it ignores case, accents and trailing spaces: choose another name"
        )
    return details


def missing(project: WebRpcs, request: SubmitRequest, details: BatchDetails) -> set[str]:
    """Return the names of the jobs that still have to be sent into a batch.

    Raises:
        BatchConflict: the batch holds other jobs, or takes no more.
    """
    batch = details.batch
    there = {job.name for job in details.jobs}
    wanted = {name for name, _ in request.jobs}
    strangers, left = there - wanted, wanted - there
    what = f"batch {batch.name!r} (id {batch.id}) of {project.host}"
    if strangers:
        raise BatchConflict(
            f"{what} holds {count(len(strangers), 'job')} not in this request, for example "
            f"{min(strangers)!r}: choose another batch name"
        )
    if batch.state is BatchState.UNKNOWN:
        raise BatchConflict(
            f"{what} is in a state that this program does not know: look at it on the project's "
            "web site"
        )
    is_closed = left and batch.state is not BatchState.INIT
    if is_closed or batch.state in (BatchState.ABORTED, BatchState.RETIRED):
        raise BatchConflict(
            f"{what} is {batch.state.name} with {len(there)} of these {len(wanted)} jobs, and a "
            "batch accepts jobs only once: choose another batch name"
        )
    return left
