"""Fetches the outputs of finished jobs to where their submit files want them.

There are three kinds of trouble. If the project cannot be reached, or cannot deliver the files, the
fetch is retried for as long as it takes. If the submit node cannot store the outputs at the moment
(a full disk, an unreachable file server), it is retried for :data:`STORAGE_WAIT`, because a held
job loses its results (HTCondor cancels it, and a release is a new job); meanwhile HTCondor shows
the job as suspended, with the reason. If a person has to act (a directory is missing or not
writable, an output does not exist), the job is held at once with the reason, because owners do not
look for trouble in a job that seems to run.
"""

from __future__ import annotations

import errno
import logging
import math
import os.path
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from boinc_gahp.errors import PASSING, GahpError, JobFailed, LedgerError, OutputError, RpcError
from boinc_gahp.fetch.container_directory import ProgramNotRun, fetch_container
from boinc_gahp.fetch.destinations import CancelScope, errno_of
from boinc_gahp.fetch.job_directory import fetch_failed, fetch_output, of_ad
from boinc_gahp.fetch.leftovers import sweep
from boinc_gahp.fetch.placements import DEV_NULL
from boinc_gahp.fetch.types import AdRequest, FetchRequest, FetchResult
from boinc_gahp.htcondor import _failures
from boinc_gahp.htcondor._context import NoLongerWanted, drop_past
from boinc_gahp.htcondor._description import JobDescription, description_of
from boinc_gahp.htcondor.status_ad import HoldCode
from boinc_gahp.ledger.rows import Hold
from boinc_gahp.submit.checks import base_name
from boinc_gahp.submit.container_jobs import output_template
from boinc_gahp.templates.reading import read_output_template

if TYPE_CHECKING:
    from boinc_gahp.htcondor._context import AccountContext, ErrorGuard
    from boinc_gahp.ledger.rows import BatchRow, JobRow
    from boinc_gahp.submit.container_jobs import ContainerJob
    from boinc_gahp.threads import Workers

log = logging.getLogger("boinc_gahp.htcondor")

#: Seconds that a finished job waits until the submit node can store its outputs.
STORAGE_WAIT = 86400.0

#: RPCs that serve all jobs of a batch: where they are, and which outputs their app has.
_OF_ALL = frozenset({"query_batch", "get_templates"})

#: Troubles of the submit node that pass, or that somebody repairs without knowing the job.
_PASSING = PASSING | {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBUSY}


class Fetcher:
    """Fetches the outputs of an owner's jobs; thread-safe, with one fetch of a job at a time."""

    def __init__(self, context: AccountContext) -> None:
        self._context = context

    def fetch(self, job: JobRow) -> Literal["fetched", "stuck", "perhaps later"]:
        """Put a finished job's outputs, stdout and stderr in place, and note it in the ledger.

        A job that could not be fetched now stays ``finished``, with its trouble noted. A repeated
        fetch, after a crash at any point, gives the same files.

        Returns:
            ``fetched`` if that is in the ledger; ``stuck`` if the project did not answer a request
            that all jobs of the batch depend on; ``perhaps later`` if the ledger tells what is to
            be done.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        context = self._context
        outcome: Literal["fetched"] | GahpError | None = None
        try:
            # The scope comes first: a cancel after the ledger was read has to find it.
            with context.scopes.open(job.id) as scope:
                if not context.jobs.writing(job.id, True):
                    return "perhaps later"
                try:
                    outcome = self._fetch(job, scope)
                finally:
                    # For a job that has ended this is in the ledger already, but not for one that
                    # was cancelled meanwhile: the cancel waits for it.
                    if outcome != "fetched":
                        context.jobs.writing(job.id, False)
        except NoLongerWanted:
            log.info("Job %d (%s) is cancelled, so it is not fetched", job.id, job.job_name)
        except LedgerError:
            raise
        except Exception as error:  # a bug must not keep the other jobs from being fetched
            log.exception("job %d (%s) cannot be fetched", job.id, job.job_name)
            fault = f"a fault of boinc_gahp ({type(error).__name__}), see its log"
            context.jobs.job_trouble([job.id], fault)
        if outcome == "fetched":
            return outcome
        is_stuck = isinstance(outcome, RpcError) and outcome.rpc in _OF_ALL
        return "stuck" if is_stuck else "perhaps later"

    def _fetch(self, job: JobRow, scope: CancelScope) -> Literal["fetched"] | GahpError | None:
        """Fetch; return why the job has to wait, or None if it has ended in another way."""
        context = self._context
        batch = None if job.batch_id is None else context.jobs.batch(job.batch_id)
        description = description_of(job)
        if description is None:
            self._hold(job, HoldCode.OUTPUT, "its description in the ledger cannot be read", 0)
            return None
        batch_id = None if batch is None else batch.project_batch_id
        try:
            request = request_for(job.job_name or "", description, batch_id)
            if description.container is None:
                result = self._put_in_place(job, of_ad(request), scope)
            else:
                result = fetch_container(context.project, request, scope)
        except ProgramNotRun as error:
            self._hold(job, HoldCode.FAILED, error.with_code(), 0)
            return None
        except GahpError as error:
            if not self._failed(job, batch, description, error):
                return error
            found_out = isinstance(error, JobFailed) and context.jobs.program_failure(job.id)
            return self._fetch(job, scope) if found_out else None
        exit_code = result.exit_status
        if description.container and exit_code and not _failures.completes(context, job):
            how = f"signal {-exit_code}" if exit_code < 0 else f"exit status {exit_code}"
            self._hold(job, HoldCode.FAILED, f"the program ended with {how}", exit_code)
            return None
        now = context.jobs.fetched(
            job.id,
            exit_code,
            result.cpu_time,
            elapsed_time=result.elapsed_time,
            bytes_sent=result.nbytes,
            bytes_received=description.bytes_received,
        )
        if now == "gone":
            raise NoLongerWanted  # right after the last file was put in place
        log.info("Job %d (%s) is fetched: exit code %d", job.id, job.job_name, exit_code)
        context.wake()
        return "fetched"

    def _put_in_place(self, job: JobRow, request: FetchRequest, scope: CancelScope) -> FetchResult:
        """Put a job's files in place; times that are not known are NaN."""
        failure = self._context.jobs.program_failure(job.id)
        if failure is None:
            return fetch_output(self._context.project, request, scope)
        is_late = time.time() > job.changed + STORAGE_WAIT
        nbytes = fetch_failed(
            self._context.project, request, failure.stderr, scope, is_late=is_late
        )
        cpu_time = math.nan if failure.cpu_time is None else failure.cpu_time
        return FetchResult(failure.exit_code, math.nan, cpu_time, nbytes)

    def _failed(
        self, job: JobRow, batch: BatchRow | None, description: JobDescription, error: GahpError
    ) -> bool:
        """Hold the job or let it wait.

        Returns:
            True if the job has left the state ``finished``, or if the ledger now says that its
            program failed; False if it waits.
        """
        over = False
        if isinstance(error, JobFailed):
            # It was done at the last poll: it was aborted since, or the project was set back.
            over = _failures.fail(self._context, job)
        elif batch is not None and _failures.lose_if_gone(self._context, job, batch, error):
            over = True
        elif isinstance(error, OutputError) and not error.passes:
            return self._storage_failed(job, description, error)
        return over or self._wait(job, str(error))

    def _storage_failed(self, job: JobRow, description: JobDescription, error: OutputError) -> bool:
        number = errno_of(error)
        passing = number in _PASSING or (
            # The directory was there at the submit, so its file system is not mounted now.
            number == errno.ENOENT and not os.path.isdir(description.iwd)  # noqa: PTH112
        )
        # When the process ends, temporary files are removed while they are being written.
        if self._context.stopping.is_set():
            return self._wait(job, str(error))
        if passing and time.time() < job.changed + STORAGE_WAIT:
            return self._wait(job, error.with_code())
        return self._hold(job, HoldCode.OUTPUT, error.with_code(), number)

    def _hold(self, job: JobRow, code: HoldCode, reason: str, subcode: int) -> bool:
        host = _failures.host_of(self._context)
        reason = f"outputs of job {job.job_name} of the BOINC project {host}: {reason}"
        self._context.jobs.hold([job.id], Hold(reason, code, subcode))
        log.warning("Job %d is held: %s", job.id, reason)
        self._context.wake()
        return True

    def _wait(self, job: JobRow, text: str) -> bool:
        # It is retried again and again: only a new trouble is a warning.
        level = logging.DEBUG if job.trouble == text else logging.WARNING
        log.log(level, "Job %d (%s) is not fetched yet: %s", job.id, job.job_name, text)
        self._context.jobs.job_trouble([job.id], text)
        return False


class FetchQueue:
    """Has outputs fetched, several jobs at a time; failed fetches are repeated after a while.

    If a project cannot be asked about a batch, only one of its jobs is tried now and then, for all
    of them: otherwise they would occupy all threads, and other batches' jobs would not be fetched.
    """

    def __init__(self, context: AccountContext, workers: Workers, guard: ErrorGuard) -> None:
        self._context = context
        self._workers = workers
        self._guard = guard
        self._fetcher = Fetcher(context)
        self._next: deque[JobRow] = deque()
        #: Jobs in the queue or being fetched.
        self._taken: set[int] = set()
        #: By job: the time before which it is not fetched again.
        self._later: dict[int, float] = {}
        #: By batch that could not be asked about: the job that is tried, None while all wait.
        self._stuck: dict[int, int | None] = {}

    def begin(self, now: float) -> float | None:
        """Start the fetches that can be made now; each thread then goes on with the next job.

        Returns:
            When to look again, None if there is nothing to wait for but news.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        drop_past(self._later, now, self._context.longest_pause)
        limit = max(1, self._context.htcondor.fetches)
        next_ = [self._try_again(batch_id, now) for batch_id in list(self._stuck)]
        if len(self._next) < limit:
            self._take(4 * limit, without=list(self._stuck))
        wanted = len(self._next)
        for number in range(limit):
            if wanted and self._workers.start(self._work, ("fetch", number)):
                wanted -= 1
        return min([*self._later.values(), *filter(None, next_)], default=None)

    def _take(self, limit: int, **which: Any) -> JobRow | None:
        """Queue jobs that are not queued yet; return the first of them."""
        # Taken before the ledger is read: a job that has ended by then is not read any more.
        taken = self._taken | self._later.keys()
        context = self._context
        rows = context.jobs.to_fetch(*context.owner, limit + len(taken), **which)
        new = [job for job in rows if job.id not in taken]
        self._taken.update(job.id for job in new)
        self._next.extend(new)
        return new[0] if new else None

    def _try_again(self, batch_id: int, now: float) -> float:
        """Queue a job of a batch that could not be asked about, if it is time; else return when."""
        if self._stuck.get(batch_id) is not None:
            return 0.0
        at = self._context.pauses.wait(("fetch from", batch_id), now)
        if not at:
            job = self._take(1, of=batch_id)
            if job is None:
                self._stuck.pop(batch_id, None)
            else:
                self._stuck[batch_id] = job.id
        return at

    def _work(self) -> None:
        while not self._context.stopping.is_set():
            try:
                job = self._next.popleft()
            except IndexError:
                return
            batch_id = job.batch_id or 0
            if self._stuck.get(batch_id, job.id) == job.id:
                at = self._guard("fetch outputs", partial(self._fetch, job, batch_id))
                if at:
                    self._later[job.id] = at
                if self._stuck.get(batch_id) == job.id:
                    self._stuck[batch_id] = None
            self._taken.discard(job.id)
            self._context.wake()

    def _fetch(self, job: JobRow, batch_id: int) -> float:
        """Fetch a job's outputs; return when to fetch them again, 0 if that is not needed."""
        outcome = self._fetcher.fetch(job)
        self._note(batch_id, outcome == "stuck")
        if outcome == "perhaps later":
            row = self._context.jobs.job(job.id)
            if row is not None and row.state == "finished":
                return self._context.pauses.later(("fetch", job.id))
        if outcome != "stuck":
            self._context.pauses.forget(("fetch", job.id))
        return 0.0

    def _note(self, batch_id: int, is_stuck: bool) -> None:
        """Note whether the project could be asked about a batch."""
        key = ("fetch from", batch_id)
        if not is_stuck:
            self._stuck.pop(batch_id, None)
            self._context.pauses.forget(key)
        elif not self._context.pauses.wait(key, time.time()):
            # Jobs of a batch that fail at the same time count as one failure.
            self._stuck.setdefault(batch_id, None)
            self._context.pauses.later(key)


def clear_away(job: JobRow) -> None:
    """Remove the leftovers of a daemon that was killed while it fetched a job; never fails.

    A cancel calls it, because no later fetch will take these files over. It looks where the job's
    files would go, and leaves files alone that fetches of other jobs are writing.
    """
    description = description_of(job)
    if description is None:
        return
    iwd = Path(description.iwd)
    streams = [iwd / path for path in (description.stdout, description.stderr) if path]
    remapped = [iwd / path for _, path in description.remaps]
    parents = [path.parent for path in (*streams, *remapped)]
    for directory in {iwd, *parents, *remapped}:
        sweep(directory)


def request_for(
    job_name: str, description: JobDescription, project_batch_id: int | None
) -> AdRequest:
    """Return which files of a job to fetch, and where to.

    Raises:
        TemplateError: the job's own output template cannot be read.
    """
    container, own = description.container_job, description.output_template
    template = None if own is None else read_output_template(own)
    if container is not None:
        template = output_template(container)
    return AdRequest(
        job_name,
        description.iwd,
        description.outputs,
        description.remaps + _kept(description, container),
        description.stdout,
        description.stderr,
        project_batch_id,
        template,
    )


def _kept(
    description: JobDescription, container: ContainerJob | None
) -> tuple[tuple[str, str], ...]:
    """Return a remap that keeps a volunteer from replacing the job's program on the submit node.

    If the job names no outputs, or what is in a directory, whatever a volunteer sends goes into the
    job's directory.
    """
    if container is None or not container.is_input:
        return ()
    name = base_name(container.command)
    named = {base_name(output) for output in description.outputs or ()}
    return () if name in {*named, *dict(description.remaps)} else ((name, DEV_NULL),)
