"""Sends jobs of a batch that failed again, as a batch of its own that knows its parent.

What is sent comes from the manifest of the first batch; which jobs failed, and which retries there
are, the project tells (:mod:`boinc_gahp.api.family`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from boinc_gahp.api import _control, finding
from boinc_gahp.api.family import number_of, retry_name, standing_of
from boinc_gahp.api.known_batch import KnownBatch
from boinc_gahp.api.types import JobState
from boinc_gahp.errors import BatchConflict, NotKnownHere, StagingError, WrongBatch
from boinc_gahp.submit.association import absent_names
from boinc_gahp.submit.checks import MAX_BATCH_NAME, MAX_JOB_NAME
from boinc_gahp.submit.types import StagedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.api.family import RetryStatus
    from boinc_gahp.api.manifest import Lineage, Manifest
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.submission import Submitted
    from boinc_gahp.api.types import Job, OnProgress
    from boinc_gahp.rpc.types import JobInfo

__all__ = ["RetryPlan", "plan_retry", "retry"]

#: Jobs that were sent by another process may still appear for so many seconds
#: (:mod:`boinc_gahp.api._comparing`).
_AT_WORK = 60.0
#: How often a retry is begun again, if another process was faster.
_ROUNDS = 3


@dataclass(frozen=True)
class RetryPlan:
    """What a retry would send.

    Attributes:
        parent: the batch whose jobs are sent again.
        name: the name of the new batch.
        jobs: the parent's jobs that it sends, by their names.
        left: how many more jobs failed that it leaves out, because it completes a retry that was
            interrupted.
        standing: how the parent's failed jobs stand.
        manifest: what was sent for the parent.
    """

    parent: KnownBatch
    name: str
    jobs: tuple[str, ...]
    left: int
    standing: RetryStatus = field(repr=False)
    manifest: Manifest = field(repr=False)


def plan_retry(batch: KnownBatch, jobs: Iterable[int | str] | None = None) -> RetryPlan:
    """Return what :func:`retry` would send now; changes nothing.

    Raises:
        NotKnownHere: this machine does not know what was submitted.
        BatchConflict: one of ``jobs`` has not failed.
        NoSuchJob: the batch has no such job.
        RpcError: the project could not be asked.
    """
    parent, wanted = _root(batch, jobs)
    manifest = _manifest(parent)
    standing = standing_of(parent, wanted)
    if wanted is not None and standing.other is not None:
        raise _not_failed(parent, standing.other)
    family = standing.family
    failed = [job.name for job in standing.failed]
    number = 1 + max([*family.taken, *(each.number for each in family.retries)], default=0)
    chosen = failed
    for half in (each for each in family.retries if each.is_half_made):
        sent = half.sent or []
        if half.jobs or (sent and set(sent) <= set(chosen)):
            # Its jobs exist, or were to be made with these names: it has to become whole.
            number, chosen = half.number, sent
            break
        if half.manifest is None or not _may_appear(half.manifest):
            number = half.number
            break
        chosen = [name for name in chosen if name not in sent]
    return RetryPlan(
        parent,
        retry_name(parent.name, number, MAX_BATCH_NAME),
        tuple(chosen),
        len(set(failed) - set(chosen)),
        standing,
        manifest,
    )


def _may_appear(manifest: Manifest) -> bool:
    """Tell whether jobs that another process has sent may still appear."""
    return not manifest.refused and time.time() < manifest.at + _AT_WORK


def _root(
    batch: KnownBatch, jobs: Iterable[int | str] | None
) -> tuple[KnownBatch, list[int | str] | None]:
    """Return the batch whose jobs are to be sent again, and which of them; None: all.

    A retry stands for the jobs of its parent that it repeats, if the parent is known here.
    """
    session = batch.session
    wanted = None if jobs is None else list(jobs)
    own = batch.manifest
    if own is None or own.parent is None or number_of(batch.name) is None:
        return batch, wanted
    try:
        parent = KnownBatch(session, finding.find_batch(session, own.parent))
    except WrongBatch:
        return batch, wanted
    if parent.manifest is None:
        return batch, wanted
    repeated = [
        own.job(job.name).retry_of or job.name
        for job in finding.find_jobs(batch, wanted)
        if job.name in own.jobs and (wanted is not None or job.state is JobState.FAILED)
    ]
    return parent, list(repeated)


def _manifest(parent: KnownBatch) -> Manifest:
    """Return what was sent for a batch; raises NotKnownHere."""
    manifest = parent.manifest
    if manifest is None:
        raise NotKnownHere(
            f"what was submitted as {parent.called} is not known here, and a project does not tell "
            "it: retry the batch on the machine that submitted it, or submit the failed jobs as a "
            "new batch"
        )
    return manifest


def _not_failed(parent: KnownBatch, job: JobInfo) -> BatchConflict:
    where = f"job {job.name!r} of batch {parent.name!r} (id {parent.id})"
    if job.state is JobState.DONE:
        text = "is done, so it is not sent again; to compute it once more, submit it as a new batch"
    else:
        text = (
            f"is {job.state.value}: only jobs that failed are sent again; wait for it, or abort it"
        )
    return BatchConflict(f"{where} {text}")


# -- sending


def retry(
    batch: KnownBatch,
    jobs: Iterable[int | str] | None = None,
    *,
    progress: OnProgress | None = None,
) -> Submitted | None:
    """Send failed jobs again; see :meth:`Batch.retry`."""
    wanted = None if jobs is None else list(jobs)
    for round_ in range(_ROUNDS):
        plan = plan_retry(batch, wanted)
        _control.renew(plan.parent, stale=True)
        if not plan.jobs:
            return None
        try:
            return _send(plan, progress)
        except BatchConflict:
            # Another process may have made a batch of this name meanwhile, with other jobs.
            again = plan_retry(batch, wanted)
            if round_ == _ROUNDS - 1 or (again.name, again.jobs) == (plan.name, plan.jobs):
                raise
    raise AssertionError  # pragma: no cover  (the loop returns or raises)


def _send(plan: RetryPlan, progress: OnProgress | None) -> Submitted:
    """Send what was planned; raises what :func:`retry` raises."""
    from boinc_gahp.api.manifest import Lineage  # noqa: PLC0415  (not for lists of batches)

    number = number_of(plan.name)
    assert number is not None  # noqa: S101  (retry_name has made it)
    names = {name: retry_name(name, number, MAX_JOB_NAME) for name in plan.jobs}
    lineage = Lineage(plan.parent.id, {again: name for name, again in names.items()})
    return send_again(
        plan.parent, plan.manifest, names, plan.name, progress=progress, lineage=lineage
    )


def send_again(
    batch: KnownBatch,
    manifest: Manifest,
    names: Mapping[str, str],
    batch_name: str,
    *,
    progress: OnProgress | None,
    lineage: Lineage | None = None,
) -> Submitted:
    """Send jobs as they were sent before.

    Args:
        batch: the batch in which they were sent.
        manifest: what was sent for it.
        names: the names of the new jobs, by those of the old ones.
        batch_name: the name of the new jobs' batch.
        progress: called with the progress.
        lineage: what the batch repeats; None: nothing.

    Raises:
        StagingError: what a job read is neither here nor on the project any more.
        NotKnownHere: a job was not submitted from here.
        GahpError: as :func:`boinc_gahp.api.submission.submit`.
    """
    from boinc_gahp.api import submission  # noqa: PLC0415  (not for lists of batches)
    from boinc_gahp.api.request import build_request  # noqa: PLC0415

    jobs = _jobs_again(batch, manifest, names, progress)
    options: Options = {**manifest.options, "name": batch_name, "progress": progress}
    request = build_request(manifest.app_name, jobs, **options)
    return submission.submit(batch.session, manifest.app_name, request, lineage)


def _jobs_again(
    batch: KnownBatch,
    manifest: Manifest,
    names: Mapping[str, str],
    progress: OnProgress | None,
) -> list[Job]:
    from boinc_gahp.api.manifest_files import readable_md5s  # noqa: PLC0415

    session = batch.session
    strange = next((name for name in names if name not in manifest.jobs), None)
    if strange is not None:
        raise NotKnownHere(
            f"what was submitted as job {strange!r} of batch {batch.name!r} (id {batch.id}) is not "
            "known here: leave it out (--job names the others), or submit it as a new batch"
        )
    kept = [manifest.job(name) for name in names]
    paths = (path for job in kept for path in job.paths)
    md5s = readable_md5s(session, paths, progress=progress)
    jobs = [replace(job.again(md5s), name=names[job.name]) for job in kept]
    staged = {
        item.physical_name: (job, open_name)
        for job, again in zip(kept, jobs, strict=True)
        for open_name, item in again.files.items()
        if isinstance(item, StagedFile)
    }
    for absent in absent_names(session.rpc, staged):
        job, open_name = staged[absent]
        source = job.inputs[open_name].source
        what = f"{source} has changed or is gone" if source.startswith("/") else source
        raise StagingError(
            f"job {job.name!r}: its input {open_name!r} cannot be sent again: {what}, and "
            f"{session.rpc.host} no longer has the file {absent!r} that was sent; bring the file "
            "back, leave the job out (--job names the others), or submit it as a new batch",
            path=source,
        )
    return jobs
