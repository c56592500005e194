"""Brings the results of a batch's jobs to their futures, as the jobs end.

One thread for each batch does this. It asks with the cheap requests of a watch, and lists the jobs
only when more of them are over than before. What is in the directory already is not fetched again,
so a program that was killed continues where it was.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import Counter
from concurrent.futures import Future, InvalidStateError
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from boinc_gahp.api import control, watching
from boinc_gahp.api.family import with_retries
from boinc_gahp.api.known_batch import KnownBatch
from boinc_gahp.api.outputs import fetching
from boinc_gahp.api.outputs.fetching_batch import says_nothing_of_jobs
from boinc_gahp.api.outputs.logs import ends_of
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import GahpError, JobFailed, Stopped
from boinc_gahp.fetch.failures import learn
from boinc_gahp.fetch.job_end import last_line
from boinc_gahp.states import JobState
from boinc_gahp.submit.control import abort_jobs
from boinc_gahp.text import quoted
from boinc_gahp.threads import in_order, start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from boinc_gahp.api.family import RetryChain
    from boinc_gahp.api.outputs.folders import FetchRecord, FinishedJob, Folder
    from boinc_gahp.api.watching import Poll
    from boinc_gahp.fetch.job_end import JobEnd
    from boinc_gahp.rpc.types import JobInfo


log = logging.getLogger("boinc_gahp.api")

T = TypeVar("T")

#: Jobs are listed again after so many times what the last list took, at the earliest.
_SHARE = 10
#: Of so many jobs that failed for the same reason, the project is asked for the stderr: that takes
#: two RPCs for each.
_ASKED = 50
_THREADS = 4
#: What cannot be fetched for a passing reason, a job's outputs or all, is asked for so many times;
#: if the batch is over, this takes five minutes. Times when the project does not answer do not
#: count.
_ATTEMPTS = 10
_LONGEST = 200
#: Pauses while the batch is over, and the project does not give its outputs.
_BACKOFF = Backoff(1.0, 60.0)


def failed_job(
    batch: KnownBatch, name: str, why: str, *, exit_status: int | None = None, stderr: str = ""
) -> JobFailed:
    """Return the error for a job that failed.

    Args:
        batch: its batch.
        name: its name.
        why: the reason on one line.
        exit_status: its exit status; None: it is not known.
        stderr: all of its stderr; the last line is in the message.
    """
    line = last_line(stderr)
    said = f"; the last line of its stderr: {quoted(line, _LONGEST)}" if line else ""
    return JobFailed(
        f"job {name!r} of {batch.called} failed: {why}{said}",
        job=name,
        exit_status=exit_status,
        why=why,
        stderr=stderr,
    )


class ResultCollector(Generic[T]):
    """Waits for a batch's jobs and sets the results of their futures; used once.

    Args:
        batch: the batch.
        directory: where its outputs are put.
        make: returns the value of a job that is done: of its name, its folder, and the note of
            what is in it.
        poll: how often the project is asked.

    Attributes:
        trouble: why results cannot be fetched just now; None: there is no trouble.
    """

    def __init__(
        self,
        batch: KnownBatch,
        directory: Path,
        make: Callable[[str, Path, FetchRecord], T],
        poll: Poll,
    ) -> None:
        self.batch = batch
        self.trouble: GahpError | None = None
        self._session = batch.session
        self._directory = directory
        self._make = make
        self._poll = poll
        self._open: dict[str, Future[T]] = {}
        self._ended = threading.Event()
        self._process = os.getpid()
        self._seen: list[int] = []
        self._not_before = -math.inf
        self._attempts: Counter[str] = Counter()
        #: How many fetches in a row failed as a whole, although the project answers.
        self._failures = 0
        #: Names of retries that are not over, by the jobs that they repeat, and their batches.
        self._again: dict[str, str] = {}
        self._retries: list[KnownBatch] = []

    def start(self, futures: Mapping[str, Future[T]]) -> None:
        """Begin to gather the results of these futures, which have their jobs' names."""
        self._open = dict(futures)
        start(self._run, f"gather-{self.batch.id}")

    def wait(self, pause: float, until: float | None) -> bool:
        """Wait ``pause`` seconds for the end; return whether all futures are over.

        Args:
            pause: in seconds.
            until: a time of ``time.monotonic()`` that the wait does not go beyond.

        Raises:
            Stopped: see :meth:`check_process`.
        """
        self.check_process()
        if until is not None:
            pause = max(0.0, min(pause, until - time.monotonic()))
        return self._ended.wait(pause)

    def check_process(self) -> None:
        """Refuse to wait in a child process, which lacks the thread that brings the results.

        Raises:
            Stopped: this is a child of the process that submitted the jobs.
        """
        if os.getpid() != self._process:
            raise Stopped(
                f"the results of {self.batch.called} come to process {self._process}, of which "
                "this one is a child: wait there, or make the same call here"
            )

    def abort(self, name: str | None = None) -> None:
        """Abort a job, or its retry, on the project; None: the batch and its retries.

        Raises:
            BatchConflict: a submit that is still running keeps undoing the abort.
            RpcError: the project could not be asked, or refused.
        """
        if name is None:
            for batch in (self.batch, *self._retries):
                control.abort(batch)
        else:
            abort_jobs(self._session.context, [self._again.get(name, name)], remember=False)

    # -- the thread

    def _run(self) -> None:
        try:
            self._gather()
            self._end(None)
        except Stopped:
            self._end(None)
        except BaseException as error:
            self._end(error)
            if not isinstance(error, GahpError):
                raise
        finally:
            self._ended.set()

    def _end(self, error: BaseException | None) -> None:
        """Give the futures that are left an error."""
        for name, future in self._open.items():
            trouble = error
            if trouble is None or self._session.closing.is_set():
                trouble = Stopped(
                    f"the project object was closed before the result of job {name!r} of "
                    f"{self.batch.called} was here: the job goes on, and the same call picks it up"
                )
            self._fail(future, trouble)

    def _gather(self) -> None:
        closing = self._session.closing
        rounds = 0
        while self._left() and not closing.is_set():
            watched = (self.batch, *self._retries)
            for _ in watching.watch(self._session, watched, poll=self._poll):
                if closing.is_set():
                    return
                try:
                    self._look(watched)
                except GahpError as error:
                    if not says_nothing_of_jobs(error):
                        raise
                    self._failures += not error.passes
                    if self._failures >= _ATTEMPTS and self.batch.is_over:
                        raise
                    # The watch goes on, and asks again.
                    log.warning(
                        "The results of batch %d cannot be fetched now: %s", self.batch.id, error
                    )
                    self.trouble = error
                    self._seen = []
                if not self._left():
                    return
            if all(each.is_over for each in (self.batch, *self._retries)):
                # The outputs of some jobs cannot be fetched now.
                _BACKOFF.wait(rounds, stop=closing)
                rounds += 1

    def _left(self) -> bool:
        """Tell whether futures are left."""
        self._open = {name: each for name, each in self._open.items() if not each.done()}
        return bool(self._open)

    def _look(self, watched: Sequence[KnownBatch]) -> None:
        """Take the results of jobs that have ended since the last look."""
        batch = self.batch
        began = time.monotonic()
        over = [each.nover for each in watched]
        is_last = all(each.is_over for each in watched)
        if not is_last and (over == self._seen or began < self._not_before):
            return
        every = self._session.rpc.iter_jobs(batch.id)
        listed, family = with_retries(batch, (job for job in every if job.name in self._open))
        self._not_before = time.monotonic() + _SHARE * (time.monotonic() - began)
        self._see_retries(listed, family)
        self.trouble = None
        ended = [job for job in listed if job.state.is_over]
        if ended:  # also if all of them failed: jobs.csv tells it
            try:
                fetched = fetching.fetch(
                    batch,
                    self._directory,
                    ended,
                    family,
                    brought=self._brought,
                    stop=self._session.closing,
                )
            except GahpError as trouble:
                self._failures += trouble.passes  # the caller counts the others
                raise
            self._failures = 0
            if self._session.closing.is_set():
                return  # what could not be fetched says only that
            for name, error in fetched.errors.items():
                self._not_fetched(name, error)
        self._failed([job for job in ended if job.state is JobState.FAILED], family)
        self._seen = over
        if batch.is_over:
            self._missing(listed)

    def _see_retries(self, listed: Sequence[JobInfo], family: RetryChain) -> None:
        """Note the retries that are under way: they are waited for."""
        under_way = {
            job.name: attempt
            for job in listed
            if not job.state.is_over and (attempt := family.of(job)) is not None
        }
        self._again = {name: attempt.job.name for name, attempt in under_way.items()}
        batches = {attempt.batch.id: attempt.batch for attempt in under_way.values()}
        self._retries = [KnownBatch(self._session, info) for info in batches.values()]

    def _brought(self, job: FinishedJob, folder: Folder) -> None:
        """Set the result of a job whose folder is complete; called by the fetching threads."""
        future = self._open.get(job.called)
        if future is None or folder.note is None:
            return
        try:
            value = self._make(job.called, folder.directory, folder.note)
        except GahpError as error:
            # Its traceback would keep the frames of all calls in memory.
            self._fail(future, error.with_traceback(None))
        except BaseException as error:  # noqa: BLE001  (it is the future's)
            self._fail(future, error)
        else:
            self._settle(partial(future.set_result, value))

    def _not_fetched(self, name: str, error: GahpError) -> None:
        self._attempts[name] += 1
        if not error.passes or self._attempts[name] >= _ATTEMPTS:
            self._fail(self._open.get(name), error)
        else:
            self.trouble = error

    def _failed(self, jobs: Sequence[JobInfo], family: RetryChain) -> None:
        """Set the errors of jobs that failed."""
        asked: Counter[str] = Counter()

        def error_of(end: JobEnd) -> tuple[str, JobFailed]:
            asked[end.why] += 1
            stderr = ""
            if asked[end.why] <= _ASKED:
                attempt = family.of(end.job)
                known = end if attempt is None else replace(end, job=attempt.job)
                stderr = learn(self._session.context, known).stderr or ""
            return end.name, failed_job(
                self.batch, end.name, end.why, exit_status=end.exit_status, stderr=stderr
            )

        ends = ends_of(self.batch, jobs).values()
        for name, error in in_order(error_of, ends, threads=_THREADS, name="failure"):
            self._fail(self._open.get(name), error)

    def _missing(self, listed: Sequence[JobInfo]) -> None:
        """Set errors for jobs of whose end a batch that is over does not tell."""
        there = {job.name: job for job in listed}
        for name, future in self._open.items():
            job = there.get(name)
            if job is None:
                reason = "the project does not have it any more"
            elif job.state is JobState.UNKNOWN:
                reason = (
                    f"the project calls its state {quoted(job.status)}; boinc_gahp does not know it"
                )
            else:
                continue
            self._fail(future, failed_job(self.batch, name, reason))

    def _fail(self, future: Future[T] | None, error: BaseException) -> None:
        if future is not None:
            self._settle(partial(future.set_exception, error))

    def _settle(self, finish: Callable[[], None]) -> None:
        """Give a future its result or error; its callbacks cannot stop the others from theirs."""
        try:
            finish()
        except InvalidStateError:
            pass  # it was cancelled, or has its result
        except BaseException:  # of callbacks, concurrent.futures only takes Exceptions
            log.exception("a callback of a future of batch %d raised an error", self.batch.id)
