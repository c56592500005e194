"""The retries of a batch: which batches they are, which jobs they repeat, and how these stand.

The retries of a batch ``sweep`` are called ``sweep-retry1``, ``sweep-retry2``, …; a job of the
second is called as the job that it repeats, with ``-retry2`` at the end. So everybody who looks at
the project can tell which jobs belong together, also on another machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.api import finding
from boinc_gahp.errors import BadRequest, NotFound, NotOwner
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.submit.checks import MAX_BATCH_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.manifest import Manifest
    from boinc_gahp.api.outputs.folders import FetchRecord
    from boinc_gahp.rpc.types import BatchInfo, JobInfo


#: What is added to the names of a batch and its jobs.
_MARK = "-retry"
_NAME = re.compile(rf"(.+){_MARK}([1-9][0-9]{{0,5}})", re.DOTALL)
#: The most retries of a batch that are looked for: a project may answer for every name.
_MOST = 300
#: Hex digits of the digest that replaces the end of a name that is too long.
_DIGEST = 12


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


def number_of(name: str) -> int | None:
    """Return the number of the retry with this name; None: it is no retry's name."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[2])


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
class RetryChain:
    """A batch and its retries.

    Attributes:
        name: the parent's name.
        retries: in their order.
        taken: numbers of retries whose names other batches have.
        originals: the ids of the parent's jobs for which :func:`with_retries` put a retry, by
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
        """Return the retry that :func:`with_retries` put for a job; None: it did not."""
        return next((each for each in self.attempts(job.name) if each.job.id == job.id), None)

    def ids(self, job_name: str) -> frozenset[int]:
        """Return the ids of a job for which a retry was put, and of all of its retries."""
        retries = (each.job.id for each in self.attempts(job_name))
        return frozenset((self.originals[job_name], *retries))

    @property
    def counts(self) -> dict[str, int]:
        """How often jobs were sent that were sent more than once, by their names."""
        sent = Counter(name for retry in self.retries for name in retry.jobs)
        return {name: number + 1 for name, number in sent.items()}

    def latest(self, job: JobInfo, bad: int | None = None) -> Attempt | None:
        """Return the retry that counts for one of the parent's jobs; None: the job itself.

        The first that is done counts, or else the last one.

        Args:
            job: the job.
            bad: the id of the attempt whose program ended badly; only later ones count instead.
        """
        if bad is not None:
            attempts = [each for each in self.attempts(job.name) if each.job.id >= bad]
            # The bad one counts until there is another.
            attempts = [each for each in attempts if each.job.id > bad] or attempts
        else:
            attempts = [] if job.state is JobState.DONE else self.attempts(job.name)
        done = (each for each in attempts if each.job.state is JobState.DONE)
        return next(done, attempts[-1] if attempts else None)


def family_of(batch: KnownBatch) -> RetryChain:
    """Return the retries of a batch; asks the project once for each, and once more.

    Retired ones are among them, as long as the project has their jobs.

    Raises:
        RpcError: the project could not be asked.
    """
    session = batch.session
    manifests = session.manifests
    retries: list[Retry] = []
    taken: set[int] = set()
    for number in range(1, _MOST + 1):
        its = retry_name(batch.name, number, MAX_BATCH_NAME)
        try:
            details = session.rpc.query_batch(batch_name=its, get_job_details=True)
        except NotFound:
            break
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
    return RetryChain(batch.name, tuple(retries), frozenset(taken))


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


def with_retries(
    batch: KnownBatch, jobs: Iterable[JobInfo], bad: Mapping[str, FetchRecord] | None = None
) -> tuple[list[JobInfo], RetryChain]:
    """Return jobs of a batch as they count: those that failed as their retries are.

    Args:
        batch: their batch.
        jobs: the jobs.
        bad: the :func:`failed_programs` among them; None: these are looked for.

    Returns:
        The jobs with their names in this batch, and the retries, which are asked about only if a
        job has failed.

    Raises:
        RpcError: the project could not be asked.
    """
    listed = list(jobs)
    bad = failed_programs(batch, listed) if bad is None else bad
    if not bad and not any(job.state is JobState.FAILED for job in listed):
        return listed, RetryChain(batch.name)
    family = family_of(batch)
    if not family.retries:
        return listed, family
    originals = {}
    for number, job in enumerate(listed):
        note = bad.get(job.name)
        attempt = family.latest(job, None if note is None else note.job_id)
        if attempt is not None:
            originals[job.name] = job.id
            listed[number] = attempt.job._replace(name=job.name)
    return listed, replace(family, originals=originals)


# -- how jobs stand


@dataclass
class RetryStatus:
    """How the failed jobs of a batch stand, with their retries.

    Attributes:
        family: the batch's retries; empty if no job has failed.
        failed: the jobs that failed, and whose retries, if any, failed, too.
        under_way: retries that are not over, by the names of the jobs that they repeat.
        saved: retries that are done, likewise.
        other: the first job that has not failed; None: all have.
    """

    family: RetryChain
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


def standing_of(batch: KnownBatch, which: Iterable[int | str] | None = None) -> RetryStatus:
    """Return how failed jobs of a batch stand; asks about retries only if a job has failed.

    Jobs whose programs ended badly count as failed, once they are fetched.

    Args:
        batch: the batch.
        which: names or ids of jobs; None: all.

    Raises:
        NoSuchJob: the batch has no such job.
        RpcError: the project could not be asked.
    """
    return standing_among(batch, list(finding.find_jobs(batch, which)))


def standing_among(batch: KnownBatch, listed: list[JobInfo]) -> RetryStatus:
    """Return how failed jobs stand, of those that were just listed; see :func:`standing_of`."""
    bad = failed_programs(batch, listed)
    counted, family = with_retries(batch, listed, bad)
    found = RetryStatus(family, [], {}, {}, None)
    for job, counting in zip(listed, counted, strict=True):
        note, attempt = bad.get(job.name), family.of(counting)
        if job.state is not JobState.FAILED and note is None:
            found.other = found.other or job
            continue
        is_bad = note is not None and attempt is not None and attempt.job.id == note.job_id
        if attempt is None or is_bad or attempt.job.state is JobState.FAILED:
            found.failed.append(job)
        elif attempt.job.state is JobState.DONE:
            found.saved[job.name] = attempt
        else:
            found.under_way[job.name] = attempt
    return found


def parent_of(batch: KnownBatch) -> int | None:
    """Return the id of the batch whose jobs a batch repeats; None: it repeats none from here."""
    if number_of(batch.name) is None:
        return None
    manifest = batch.manifest
    return None if manifest is None else manifest.parent


def ran_programs(batch: KnownBatch) -> bool:
    """Tell whether a batch's jobs run programs in containers, as far as this is known here."""
    manifest = batch.manifest
    if manifest is not None:
        line = next(iter(manifest.jobs.values()), None)
        return line is not None and "command" in json.loads(line)
    return batch.app_name == batch.session.project_settings.container_app


def note_of(batch: KnownBatch, job: JobInfo, root: Path | None) -> FetchRecord | None:
    """Return the note in a job's folder, if that has its outputs, or those of a retry.

    Args:
        batch: the batch.
        job: the job.
        root: where the batch was fetched; None: nowhere.
    """
    from boinc_gahp.api.outputs.folders import (  # noqa: PLC0415  (not for lists of batches)
        folder_name,
        read_note,
    )

    note = None if root is None else read_note(root / folder_name(job.name))
    if note is None or note.project != batch.session.rpc.url:
        return None
    return note if job.id in (note.job_id, *note.attempts) else None


def program_note(batch: KnownBatch, job: JobInfo, root: Path | None) -> FetchRecord | None:
    """Return what the folder of a job that is done tells of its program; None: it was not fetched.

    Args:
        batch: the batch.
        job: the job.
        root: where the batch was fetched; None: nowhere.
    """
    note = note_of(batch, job, root) if job.state is JobState.DONE else None
    is_other = note is None or (note.exit_status is None and not note.failure)
    return None if is_other else note


def may_have_failed_programs(batch: KnownBatch) -> bool:
    """Tell whether there may be jobs for :func:`failed_programs`; reads no job's folder."""
    return (batch.directory is not None or bool(batch.endings)) and ran_programs(batch)


def failed_programs(batch: KnownBatch, jobs: Iterable[JobInfo]) -> dict[str, FetchRecord]:
    """Return the notes of the jobs whose programs ended badly, by the jobs' names.

    Without a fetch on this machine it is empty, unless the project was asked
    (:func:`~boinc_gahp.api.outputs.fetching_batch.learn_endings`).
    """
    if not may_have_failed_programs(batch):
        return {}
    root, asked = batch.directory, batch.endings
    notes = {job.name: program_note(batch, job, root) or asked.get(job.id) for job in jobs}
    return {name: note for name, note in notes.items() if note is not None and note.failure}
