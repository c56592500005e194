"""Acts on batches: sends failed jobs again, aborts, retires and extends, and renews leases.

The project is given batches' ids. A retry is a batch of its own that knows its parent. What is sent
comes from the manifest of the first batch; which jobs failed, and which retries there are, the
project tells (:mod:`boinc_gahp.api.family`).
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.api import finding
from boinc_gahp.api.family import parent_of, retry_name, standing_of
from boinc_gahp.api.known_batch import ENDED, KnownBatch
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import (
    BadRequest,
    BatchConflict,
    GahpError,
    NoSuchBatch,
    NotKnownHere,
    OutputError,
    StagingError,
    WrongBatch,
)
from boinc_gahp.quantities import LEASE
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.submit.abort import abort_once
from boinc_gahp.submit.association import absent_names
from boinc_gahp.submit.checks import MAX_BATCH_NAME, MAX_JOB_NAME
from boinc_gahp.submit.control import abort_jobs as abort_by_names
from boinc_gahp.submit.types import StagedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.api.family import RetryStatus
    from boinc_gahp.api.manifest import Lineage, Manifest
    from boinc_gahp.api.request import Options
    from boinc_gahp.api.submission import Submitted
    from boinc_gahp.rpc.client import WebRpcs as Rpc
    from boinc_gahp.rpc.types import JobInfo
    from boinc_gahp.submit.types import OnProgress

#: How often a retry is begun again, if another process was faster.
_ROUNDS = 3


@dataclass(frozen=True)
class RetryPlan:
    """What a retry would send.

    Attributes:
        parent: the batch whose jobs are sent again.
        number: of the retry, from 1.
        name: the name of the new batch.
        jobs: the parent's jobs that it sends, by their names.
        left: how many more jobs failed that it leaves out, because it completes a retry that was
            interrupted.
        standing: how the parent's failed jobs stand.
        manifest: what was sent for the parent.
    """

    parent: KnownBatch
    number: int
    name: str
    jobs: tuple[str, ...]
    left: int
    standing: RetryStatus = field(repr=False)
    manifest: Manifest = field(repr=False)


def plan_retry(batch: KnownBatch, jobs: Iterable[int | str] | None = None) -> RetryPlan:
    """Return what :func:`retry` would send now; changes nothing.

    Asks how programs ended that were not fetched.

    Raises:
        NotKnownHere: this machine does not know what was submitted.
        BatchConflict: one of ``jobs`` has not failed.
        NoSuchJob: the batch has no such job.
        RpcError: the project could not be asked.
    """
    parent, wanted = _root(batch, jobs)
    manifest = parent.manifest
    if manifest is None:
        raise NotKnownHere(
            f"what was submitted as {parent.called} is not known here, and a project does not tell "
            "it: retry the batch on the machine that submitted it, or submit the failed jobs as a "
            "new batch"
        )
    from boinc_gahp.api.outputs.fetching_batch import learn_endings  # noqa: PLC0415  (not for lists of batches)

    with suppress(OutputError):  # other jobs can be sent again all the same
        learn_endings(parent, wanted)
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
        if half.manifest is None or not half.manifest.may_be_sending:
            number = half.number
            break
        chosen = [name for name in chosen if name not in sent]
    return RetryPlan(
        parent,
        number,
        retry_name(parent.name, number, MAX_BATCH_NAME),
        tuple(chosen),
        len(set(failed) - set(chosen)),
        standing,
        manifest,
    )


def _root(
    batch: KnownBatch, jobs: Iterable[int | str] | None
) -> tuple[KnownBatch, list[int | str] | None]:
    """Return the batch whose jobs are to be sent again, and which of them; None: all.

    A retry stands for the jobs of its parent that it repeats, if the parent is known here.
    """
    session = batch.session
    wanted = None if jobs is None else list(jobs)
    own, parent_id = batch.manifest, parent_of(batch)
    if own is None or parent_id is None:
        return batch, wanted
    try:
        parent = KnownBatch(session, finding.find_batch(session, parent_id))
    except WrongBatch:
        return batch, wanted
    if parent.manifest is None:
        return batch, wanted
    repeated: list[int | str] = [
        own.job(job.name).retry_of or job.name
        for job in finding.find_jobs(batch, wanted)
        if job.name in own.jobs and (wanted is not None or job.state is JobState.FAILED)
    ]
    return parent, repeated


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
        renew(plan.parent, stale=True)
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

    names = {name: retry_name(name, plan.number, MAX_JOB_NAME) for name in plan.jobs}
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
    from boinc_gahp.api.manifest_files import readable_md5s  # noqa: PLC0415
    from boinc_gahp.api.request import build_request  # noqa: PLC0415

    session = batch.session
    strange = next((name for name in names if name not in manifest.jobs), None)
    if strange is not None:
        raise NotKnownHere(
            f"what was submitted as job {strange!r} of batch {batch.name!r} (id {batch.id}) is not "
            "known here: leave it out (--job names the others), or submit it as a new batch"
        )
    kept = [manifest.job(name) for name in names]
    paths = (path for job in kept for path in job.paths)
    md5s = readable_md5s(session.context, paths, progress=progress)
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
    options: Options = {**manifest.options, "name": batch_name, "progress": progress}
    request = build_request(manifest.app_name, jobs, **options)
    return submission.submit(session, manifest.app_name, request, lineage)


log = logging.getLogger("boinc_gahp.api")

B = TypeVar("B", bound="KnownBatch")

#: Seconds between two renewals of a lease.
_OFTEN = 86400.0
#: Seconds until a failed renewal is repeated, and the limit for one renewal, so that it does not
#: keep a waiting program from looking at its batch.
_PAUSE = 300.0
_TIMEOUT = 5.0


def submitted(batch: B, sent: Submitted) -> B:
    """Note on a handle what a submit found; the lease of a batch that was there is renewed."""
    batch.existed, batch.compared, batch.published = sent.existed, sent.compared, sent.published
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
        until = float(int(time.time() + batch.session.settings.jobs.batch_lease))
        rpc = (rpc or batch.session.rpc).until(now + _TIMEOUT)
        rpc.set_expire_time(until, batch_id=batch.id)
    except GahpError as error:
        batch.renew_from, batch.lease_trouble = now + _PAUSE, error
        log.warning("Batch %d (%s) cannot be kept longer: %s", batch.id, batch.name, error)
    else:
        batch.info, batch.lease_trouble = replace(batch.info, expire_time=until), None


def refresh(batch: B) -> B:
    """Ask the project about a batch; return it.

    A project that began anew with an empty database gives ids to other batches.
    """
    info = finding.by_id(batch.session, batch.id, batch.njobs)
    if info.name != batch.name:
        raise NoSuchBatch(
            f"{batch.called} is gone: the project has the batch {info.name!r} under this id now",
            said=str(batch.id),
        )
    batch.see(info)
    return batch


def _is_due(batch: KnownBatch) -> bool:
    end = batch.expire_time
    if end is None or batch.gone or batch.trouble is not None or batch.state in ENDED:
        return False
    seconds = batch.session.settings.jobs.batch_lease
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
    refresh(batch)
    names = [job.name for job in finding.find_jobs(batch, jobs) if not job.state.is_over]
    if names:
        abort_by_names(batch.session.context, names, remember=False)
    refresh(batch)


def retire(batch: KnownBatch) -> None:
    """Retire a batch."""
    refresh(batch)
    batch.session.rpc.retire_batch(batch_id=batch.id)
    batch.session.context.forget_batch(batch.name)
    batch.session.context.tidy()
    # The project keeps the batch's and jobs' names taken, and can say so itself.
    batch.session.manifests.forget(batch.name, batch.id)
    refresh(batch)


def extend(batch: KnownBatch, until: float | str) -> None:
    """Set a batch's lease."""
    if isinstance(until, str):
        until = time.time() + LEASE.read(until)
    if math.isnan(until) or until <= time.time() or _LATEST < until < math.inf:
        raise BadRequest(
            f"batch {batch.name!r} cannot be kept until {until!r}: expected seconds since 1970, "
            f"later than now ({time.time():.0f}); math.inf sets no end"
        )
    expire_time = 0.0 if until == math.inf else float(until)
    refresh(batch)
    batch.session.rpc.set_expire_time(expire_time, batch_id=batch.id)
    refresh(batch)
