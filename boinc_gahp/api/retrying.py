"""Sends jobs of a batch that failed again, as a batch of its own that knows its parent.

The retries of a batch ``sweep`` are called ``sweep-retry1``, ``sweep-retry2``, …; a job of the
second is called as the job that it repeats, with ``-retry2`` at the end. So everybody who looks at
the project can tell which jobs belong together, also on another machine. What was sent is known
only from the manifest on the machine that submitted the batch.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.api import control, finding
from boinc_gahp.api.types import JobState
from boinc_gahp.errors import (
    BadRequest,
    BatchConflict,
    NotFound,
    NotKnownHere,
    NotOwner,
    StagingError,
    WrongBatch,
)
from boinc_gahp.rpc import BatchState
from boinc_gahp.submit import MAX_BATCH_NAME, MAX_JOB_NAME, StagedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.manifest import Manifest
    from boinc_gahp.api.session import Session
    from boinc_gahp.api.types import Job, OnProgress, Progress
    from boinc_gahp.rpc import BatchInfo, JobInfo

__all__ = [
    "Attempt",
    "Family",
    "Retry",
    "RetryPlan",
    "Standing",
    "as_they_count",
    "family_of",
    "parent_of",
    "plan_retry",
    "retries_of",
    "retry",
    "standing_of",
]

#: What is added to the names of a batch and its jobs.
_MARK = "-retry"
_NAME = re.compile(rf"(.+){_MARK}([1-9][0-9]{{0,5}})", re.DOTALL)
#: Hex digits of the digest that replaces the end of a name that is too long.
_DIGEST = 12
#: Jobs that were sent by another process may still appear for so many seconds
#: (:mod:`boinc_gahp.api.comparing`).
_AT_WORK = 60.0
#: How often a retry is begun again, if another process was faster.
_ROUNDS = 3


def retry_name(name: str, number: int, longest: int) -> str:
    """Return the name that a batch or a job has in a retry.

    Args:
        name: the parent's.
        number: of the retry, from 1.
        longest: how many bytes a name may have; the end of a longer one is replaced by a digest.
    """
    mark = f"{_MARK}{number}"
    whole = name.encode()
    if len(whole) + len(mark) <= longest:
        return name + mark
    digest = hashlib.sha256(whole).hexdigest()[:_DIGEST]
    kept = whole[: longest - len(mark) - _DIGEST - 1].decode("utf-8", "ignore").rstrip()
    return f"{kept}~{digest}{mark}"


class Attempt(NamedTuple):
    """A job that repeats one of the parent's, and its batch."""

    job: JobInfo
    batch: BatchInfo


@dataclass(frozen=True)
class Retry:
    """A retry of a batch.

    Attributes:
        number: from 1.
        info: the project's answer about its batch.
        jobs: its jobs, by the names of the parent's jobs that they repeat.
        manifest: what was sent for it; None: this machine does not know.
    """

    number: int
    info: BatchInfo
    jobs: Mapping[str, JobInfo]
    manifest: Manifest | None

    @property
    def sent(self) -> list[str] | None:
        """The parent's jobs that were to be sent; None: this machine does not know."""
        manifest = self.manifest
        if manifest is None or manifest.parent is None:
            return None
        return [manifest.job(name).retry_of or name for name in manifest.jobs]

    @property
    def is_half_made(self) -> bool:
        """Whether jobs may still be sent into its batch."""
        # The end of a submit_batch changes the state (``web-rpcs.rst``, "Batch states").
        if self.info.state is not BatchState.INIT:
            return False
        sent = self.sent
        return not self.jobs if sent is None else any(name not in self.jobs for name in sent)


@dataclass(frozen=True)
class Family:
    """A batch and its retries.

    Attributes:
        name: the parent's name.
        retries: in their order.
        taken: numbers of retries whose names other batches have.
        originals: the ids of the parent's jobs for which :func:`as_they_count` put a retry, by
            their names.
    """

    name: str
    retries: tuple[Retry, ...] = ()
    taken: frozenset[int] = frozenset()
    originals: Mapping[str, int] = field(default_factory=dict)

    def attempts(self, job_name: str) -> list[Attempt]:
        """Return the retries of one of the parent's jobs, in their order."""
        return [
            Attempt(each.jobs[job_name], each.info)
            for each in self.retries
            if job_name in each.jobs
        ]

    def of(self, job: JobInfo) -> Attempt | None:
        """Return the retry that :func:`as_they_count` put for a job; None: it did not."""
        return next((each for each in self.attempts(job.name) if each.job.id == job.id), None)

    def ids(self, job_name: str) -> frozenset[int]:
        """Return the ids of a job for which a retry was put, and of all of its retries."""
        retries = (each.job.id for each in self.attempts(job_name))
        return frozenset((self.originals[job_name], *retries))

    @property
    def counts(self) -> dict[str, int]:
        """How often jobs were sent that were sent more than once, by their names."""
        found: dict[str, int] = {}
        for retry in self.retries:
            for name in retry.jobs:
                found[name] = found.get(name, 1) + 1
        return found

    def latest(self, job: JobInfo) -> Attempt | None:
        """Return the retry that counts for one of the parent's jobs; None: the job itself.

        The first that is done counts, or else the last one.
        """
        attempts = [] if job.state is JobState.DONE else self.attempts(job.name)
        done = (each for each in attempts if each.job.state is JobState.DONE)
        return next(done, attempts[-1] if attempts else None)


def family_of(session: Session, name: str) -> Family:
    """Return the retries of a batch; asks the project once for each, and once more.

    Retired ones are among them, as long as the project has their jobs.

    Raises:
        RpcError: the project could not be asked.
    """
    from boinc_gahp.api.manifests import Manifests  # noqa: PLC0415  (not for lists of batches)

    manifests = Manifests(session)
    retries: list[Retry] = []
    taken: set[int] = set()
    number = 0
    while True:
        number += 1
        its = retry_name(name, number, MAX_BATCH_NAME)
        try:
            details = session.rpc.query_batch(batch_name=its, get_job_details=True)
        except NotFound:
            return Family(name, tuple(retries), frozenset(taken))
        except (NotOwner, BadRequest):
            taken.add(number)
            continue
        manifest = manifests.of(its, details.batch.id)
        jobs = _by_parents(details.jobs, number, manifest)
        is_other = bool(details.jobs or manifest is not None) and not jobs
        if is_other and (manifest is None or manifest.parent is None):
            taken.add(number)
        else:
            retries.append(Retry(number, details.batch, jobs, manifest))


def _by_parents(
    jobs: Iterable[JobInfo], number: int, manifest: Manifest | None
) -> dict[str, JobInfo]:
    """Return a retry's jobs by the names of those that they repeat; others are left out."""
    mark = f"{_MARK}{number}"
    found = {}
    for job in jobs:
        name = None
        if manifest is not None and job.name in manifest.jobs:
            name = manifest.job(job.name).retry_of
        if name is None and job.name.endswith(mark):
            name = job.name[: -len(mark)]
        if name:
            found[name] = job
    return found


def retries_of(batch: Batch) -> list[Batch]:
    """Return the retries of a batch, in their order; see :meth:`Batch.retries`."""
    found = family_of(batch.project.session, batch.name).retries
    return [type(batch)(batch.project, each.info) for each in found]


def as_they_count(
    session: Session, batch_name: str, jobs: Iterable[JobInfo]
) -> tuple[list[JobInfo], Family]:
    """Return jobs of a batch as they count: those that failed as their retries are.

    Args:
        session: the project.
        batch_name: the name of their batch.
        jobs: the jobs.

    Returns:
        The jobs with their names in this batch, and the retries, which are asked about only if a
        job has failed.

    Raises:
        RpcError: the project could not be asked.
    """
    listed = list(jobs)
    if not any(job.state is JobState.FAILED for job in listed):
        return listed, Family(batch_name)
    family = family_of(session, batch_name)
    if not family.retries:
        return listed, family
    originals = {}
    for number, job in enumerate(listed):
        attempt = family.latest(job)
        if attempt is not None:
            originals[job.name] = job.id
            listed[number] = attempt.job._replace(name=job.name)
    return listed, replace(family, originals=originals)


# -- how jobs stand


@dataclass(frozen=True)
class Standing:
    """How the failed jobs of a batch stand, with their retries.

    Attributes:
        family: the batch's retries; empty if no job has failed.
        failed: the jobs that failed, and whose retries, if any, failed, too.
        under_way: retries that are not over, by the names of the jobs that they repeat.
        saved: retries that are done, likewise.
        other: the first job that has not failed; None: all have.
    """

    family: Family
    failed: list[JobInfo]
    under_way: dict[str, Attempt]
    saved: dict[str, Attempt]
    other: JobInfo | None

    @property
    def retries(self) -> list[BatchInfo]:
        """The batches with the retries that count, in their order."""
        counting = [*self.under_way.values(), *self.saved.values()]
        used = {attempt.batch.id for attempt in counting}
        return [each.info for each in self.family.retries if each.info.id in used]


def standing_of(batch: Batch, which: Iterable[int | str] | None = None) -> Standing:
    """Return how failed jobs of a batch stand; asks about retries only if a job has failed.

    Args:
        batch: the batch.
        which: names or ids of jobs; None: all.

    Raises:
        NoSuchJob: the batch has no such job.
        RpcError: the project could not be asked.
    """
    session = batch.project.session
    failed = []
    other = None
    for job in finding.find_jobs(session, batch.id, batch.name, which):
        if job.state is JobState.FAILED:
            failed.append(job)
        else:
            other = other or job
    found = Standing(
        family_of(session, batch.name) if failed else Family(batch.name), [], {}, {}, other
    )
    for job in failed:
        attempt = found.family.latest(job)
        if attempt is None or attempt.job.state is JobState.FAILED:
            found.failed.append(job)
        elif attempt.job.state is JobState.DONE:
            found.saved[job.name] = attempt
        else:
            found.under_way[job.name] = attempt
    return found


def parent_of(batch: Batch) -> int | None:
    """Return the id of the batch whose jobs a batch repeats; None: it repeats none from here."""
    if not _NAME.fullmatch(batch.name):
        return None
    manifest = batch.manifest
    return None if manifest is None else manifest.parent


# -- what to send


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

    parent: Batch
    name: str
    jobs: tuple[str, ...]
    left: int
    standing: Standing = field(repr=False)
    manifest: Manifest = field(repr=False)


def plan_retry(batch: Batch, jobs: Iterable[int | str] | None = None) -> RetryPlan:
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


def _root(batch: Batch, jobs: Iterable[int | str] | None) -> tuple[Batch, list[int | str] | None]:
    """Return the batch whose jobs are to be sent again, and which of them; None: all.

    A retry stands for the jobs of its parent that it repeats, if the parent is known here.
    """
    session = batch.project.session
    wanted = None if jobs is None else list(jobs)
    own = batch.manifest
    if own is None or own.parent is None or not _NAME.fullmatch(batch.name):
        return batch, wanted
    try:
        parent = batch.project.batch(own.parent)
    except WrongBatch:
        return batch, wanted
    if parent.manifest is None:
        return batch, wanted
    listed = finding.find_jobs(session, batch.id, batch.name, wanted)
    repeated = [
        own.job(job.name).retry_of or job.name
        for job in listed
        if job.name in own.jobs and (wanted is not None or job.state is JobState.FAILED)
    ]
    return parent, list(repeated)


def _manifest(parent: Batch) -> Manifest:
    """Return what was sent for a batch; raises NotKnownHere."""
    manifest = parent.manifest
    if manifest is None:
        raise NotKnownHere(
            f"what was submitted as batch {parent.name!r} (id {parent.id}) of "
            f"{parent.project.host} is not known here, and a project does not tell it: retry the "
            "batch on the machine that submitted it, or submit the failed jobs as a new batch"
        )
    return manifest


def _not_failed(parent: Batch, job: JobInfo) -> BatchConflict:
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
    batch: Batch,
    jobs: Iterable[int | str] | None = None,
    *,
    progress: OnProgress | None = None,
) -> Batch | None:
    """Send failed jobs again; see :meth:`Batch.retry`."""
    wanted = None if jobs is None else list(jobs)
    for round_ in range(_ROUNDS):
        plan = plan_retry(batch, wanted)
        control.renew(plan.parent, stale=True)
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


def _send(plan: RetryPlan, progress: OnProgress | None) -> Batch:
    """Send what was planned; raises what :func:`retry` raises."""
    from boinc_gahp.api import submission  # noqa: PLC0415  (not for lists of batches)
    from boinc_gahp.api.manifest import Lineage  # noqa: PLC0415

    parent, manifest = plan.parent, plan.manifest
    session = parent.project.session
    found = _NAME.fullmatch(plan.name)
    assert found is not None  # noqa: S101  (retry_name has made it)
    number = int(found[2])
    jobs = _jobs(session, plan, manifest, number, progress)
    sending = False

    def report(news: Progress) -> None:
        nonlocal sending
        sending = sending or news.step == "submitting"
        if progress is not None:
            progress(news)

    options = manifest.options
    options["name"], options["progress"] = plan.name, report
    names = dict(zip((job.name or "" for job in jobs), plan.jobs, strict=True))
    lineage = Lineage(parent.id, names)
    info, compared = submission.submit(session, manifest.app_name, jobs, lineage, **options)
    made = type(parent)(parent.project, info)
    made.existed, made.compared = not sending, compared
    if made.existed:
        control.renew(made)
    return made


def _jobs(
    session: Session,
    plan: RetryPlan,
    manifest: Manifest,
    number: int,
    progress: OnProgress | None,
) -> list[Job]:
    """Return the jobs to send.

    Raises:
        StagingError: what a job read is neither here nor on the project any more.
        NotKnownHere: a job was not submitted from here.
    """
    from boinc_gahp.api.manifests import readable_md5s  # noqa: PLC0415

    strange = next((name for name in plan.jobs if name not in manifest.jobs), None)
    if strange is not None:
        raise NotKnownHere(
            f"what was submitted as job {strange!r} of batch {plan.parent.name!r} (id "
            f"{plan.parent.id}) is not known here: leave it out (--job names the others), or "
            "submit it as a new batch"
        )
    kept = [manifest.job(name) for name in plan.jobs]
    paths = (path for job in kept for path in job.paths)
    md5s = readable_md5s(session, paths, progress=progress)
    jobs = [
        replace(job.again(md5s), name=retry_name(job.name, number, MAX_JOB_NAME)) for job in kept
    ]
    staged = {
        item.physical_name: (job, open_name)
        for job, again in zip(kept, jobs, strict=True)
        for open_name, item in again.files.items()
        if isinstance(item, StagedFile)
    }
    for absent in session.bridge.absent(staged) if staged else ():
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
