"""Finds a job on the project: its batch, its workunit, its canonical instance.

No RPC tells the batch of a job. query_completed_job tells only the canonical instance's id, and
get_output.php wants its name; so the way goes from the batch (query_batch: workunit and instance
ids of all its jobs) to the workunit (query_job: the instance's name).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import NotFound, NotOwner

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.bridge.context import Context
    from boinc_gahp.bridge.known import BatchView, JobIds


@dataclass(frozen=True, slots=True)
class Located:
    """A job, and the batch it is in."""

    batch_id: int
    app_name: str
    ids: JobIds


def near(context: Context, job_name: str) -> Located | None:
    """Return the job if this process has seen it, or if its name says which batch it is in.

    A gridmanager's job is ``batch#cluster.proc`` (``gahp.rst``, "BOINC_* commands").

    Raises:
        RpcError: the project could not be asked.
    """
    batch = context.known.batch_of(job_name)
    if batch is not None:
        found = _in_batch(context, batch, job_name, _has_result(job_name))
        if found is not None:
            return found
    batch_name = job_name.rpartition("#")[0]
    if not batch_name:
        return None
    return _in_batch(context, batch_name, job_name, _has_result(job_name))


def in_batch(context: Context, batch_id: int, job_name: str) -> Located | None:
    """Return the job if it is in this batch.

    Raises:
        RpcError: the project could not be asked.
    """
    return _in_batch(context, batch_id, job_name, _has_result(job_name))


def far(context: Context, job_name: str) -> Located | None:
    """Look for the job in every batch of the account that is not retired, the newest first.

    What is seen on the way is remembered: a batch that has been submitted gets no more jobs, so
    each is asked for once.

    Raises:
        RpcError: the project could not be asked.
    """
    has_result = _has_result(job_name)

    def tells(view: BatchView) -> bool:
        return has_result(view) or (view.final and job_name not in view.jobs)

    for batch in sorted(context.known.batches(), key=lambda batch: -batch.id):
        found = _in_batch(context, batch.id, job_name, tells)
        if found is not None:
            return found
    return None


def _has_result(job_name: str) -> Callable[[BatchView], bool]:
    def tells(view: BatchView) -> bool:
        ids = view.jobs.get(job_name)
        return ids is not None and ids.canonical_instance_id != 0

    return tells


def _in_batch(
    context: Context, batch: int | str, job_name: str, good: Callable[[BatchView], bool]
) -> Located | None:
    try:
        view = context.known.view(batch, good)
    except (NotFound, NotOwner):
        return None
    ids = view.jobs.get(job_name)
    return None if ids is None else Located(view.id, view.app_name, ids)
