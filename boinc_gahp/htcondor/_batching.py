"""Batches of waiting jobs: which jobs go into one, when, how large it is, and its request."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from boinc_gahp.errors import BatchTooLarge, JobRefused
from boinc_gahp.htcondor._description import description_of
from boinc_gahp.quantities import in_parts
from boinc_gahp.submit.container_jobs import make_container_jobs
from boinc_gahp.submit.types import LocalFile, SubmitRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boinc_gahp.config.settings import HTCondor
    from boinc_gahp.errors import GahpError
    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.htcondor._context import AccountContext
    from boinc_gahp.htcondor._description import JobDescription
    from boinc_gahp.ledger.rows import BatchRow, JobRow
    from boinc_gahp.submit.container_jobs import ContainerJob


#: If a job's time of acceptance is more than this many seconds in the future, the clock was set
#: back.
_SKEW = 1.0


#: Bytes of a request besides its jobs, at most.
_HEAD_BYTES = 5_000
#: A batch's request is not made smaller than this, in bytes of jobs.
_SMALLEST = 10_000


def due_batches(
    waiting: Iterable[JobRow], now: float, htcondor: HTCondor, most_bytes: Callable[[str], int]
) -> tuple[list[list[JobRow]], float | None]:
    """Return the batches to make now, each a list of jobs, and when to look again.

    Args:
        waiting: the waiting jobs, oldest first.
        now: seconds since the epoch.
        htcondor: the settings for when a group is sent, and for the most jobs in a batch.
        most_bytes: given a ``group_key``, returns the most bytes of jobs in a batch's request; a
            larger job goes alone.

    Returns:
        The batches in the order of their oldest jobs' groups; a time, None if nothing else waits.
    """
    groups: dict[str, list[JobRow]] = {}
    for job in waiting:
        groups.setdefault(job.group_key, []).append(job)
    batches: list[list[JobRow]] = []
    times: list[float] = []
    for group in groups.values():
        most = most_bytes(group[0].group_key)
        *full, last = in_parts(group, lambda job: job.size, most, htcondor.batch_jobs)
        batches += full
        accepted = [job.accepted for job in last]
        at = min(max(accepted) + htcondor.send_after, min(accepted) + htcondor.longest_wait)
        if len(last) >= htcondor.batch_jobs or at <= now or last[-1].accepted > now + _SKEW:
            batches.append(last)
        else:
            times.append(at)
    return batches, min(times, default=None)


class BatchSizes:
    """What a manager knows about sizes."""

    def __init__(self, context: AccountContext) -> None:
        self._context = context
        #: The largest request that the project accepts, as far as learned.
        self._learned = math.inf
        #: The same for kinds of jobs, by their ``group_key``.
        self._of_kind: dict[str, int] = {}
        self._slots: dict[int, str] = {}

    @property
    def batch_bytes(self) -> int:
        """The most bytes of jobs in a batch's request."""
        allowed = self._context.project.project_settings.max_post_bytes - _HEAD_BYTES
        return int(min(self._context.htcondor.batch_bytes, allowed, self._learned))

    def most_bytes(self, group_key: str) -> int:
        """Return :attr:`batch_bytes` for a kind of jobs; less if they are larger than estimated.

        Jobs take input templates with them whose size is not known when the jobs are accepted.
        """
        return min(self.batch_bytes, self._of_kind.get(group_key, self.batch_bytes))

    def learn(self, batch: BatchRow, jobs: Iterable[JobRow], error: GahpError) -> None:
        """Make later batches smaller than one of ``jobs`` that was too large."""
        if not isinstance(error, BatchTooLarge):
            return
        allowed = self._context.project.project_settings.max_post_bytes
        if error.nbytes <= allowed:  # the project takes less
            self._learned = max(_SMALLEST, min(self.batch_bytes, error.nbytes // 2))
            return
        kind = batch.group_key.partition("/")[0]
        counted = sum(job.size for job in jobs)
        fits = int((allowed - _HEAD_BYTES) * counted / error.nbytes)
        self._of_kind[kind] = max(1, min(self._of_kind.get(kind, fits), fits))

    def slot_of(self, batch: BatchRow) -> str:
        """Return a batch's kind of slot; batches do not wait for those in slots of other kinds.

        "roll back": it is rolled back; "stage": its local files need more than one upload, and so
        perhaps hours; "send": all others.
        """
        if batch.state == "giving_up":
            return "roll back"
        slot = self._slots.get(batch.id)
        if slot is None:
            nbytes = local_bytes(self._context.jobs.jobs_of(batch.id, "sending"))
            one_post = self._context.settings.staging.bytes_per_post
            slot = self._slots[batch.id] = "send" if nbytes <= one_post else "stage"
        return slot

    def forget(self, batch: BatchRow) -> None:
        """Forget a batch's slot."""
        self._slots.pop(batch.id, None)


def request_of(
    project: FetchContext,
    batch: BatchRow,
    jobs: Sequence[JobRow],
    lease: float,
    keep_going: Callable[[], None] = lambda: None,
) -> SubmitRequest:
    """Return the request for a batch of ``jobs``, which have equal parameters.

    Args:
        project: makes the files of jobs in containers.
        batch: the batch, with its name.
        jobs: its jobs, at least one, with their names in it.
        lease: its lease in seconds.
        keep_going: called now and then while large files are made; raises to stop.

    Raises:
        JobRefused: a description in the ledger is damaged; names the job.
        StagingError: files of jobs in containers cannot be made.
    """
    described = [(str(job.job_name), _description(job)) for job in jobs]
    first = described[0][1]
    if first.container:
        made = make_container_jobs(
            # All jobs of a batch are in containers if one is (``group_key``).
            [(name, cast("ContainerJob", job.container_job)) for name, job in described],
            project.made,
            project.digests.md5,
            keep_going,
        )
    else:
        made = [(name, job.job) for name, job in described]
    return SubmitRequest(
        batch.name,
        batch.app_name,
        made,
        parameters=first.parameters,
        app_version_num=first.app_version_num,
        outputs={} if first.container else {name: job.other_outputs for name, job in described},
        lease=lease,
    )


def local_bytes(jobs: Sequence[JobRow]) -> int:
    """Return the bytes of the local input files of jobs."""
    sizes: dict[str, int] = {}
    for job in jobs:
        description = description_of(job)
        for _, file in description.inputs if description else ():
            if isinstance(file, LocalFile) and file.expected is not None:
                sizes[file.path] = file.expected[0]
    return sum(sizes.values())


def _description(job: JobRow) -> JobDescription:
    description = description_of(job)
    if description is None:
        raise JobRefused(
            f"the description of job {job.job_directory} in the ledger cannot be read: release the "
            "job to submit it again",
            job_name=job.job_name,
        )
    return description
