"""Futures over the jobs of a batch: those of :mod:`concurrent.futures`, for any kind of job.

A thread (:mod:`.collecting`) watches the batch, fetches each job's outputs when it is done, and
sets its future's result. What the result is made of is given by a function, ``make``: an app's job
gives its :class:`JobResult`, other kinds of jobs what they computed.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from boinc_gahp.api.futures.collecting import ResultCollector
from boinc_gahp.api.progress import show_results, shown
from boinc_gahp.api.watching import Poll
from boinc_gahp.quantities import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from typing_extensions import Self

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.outputs.folders import FetchRecord
    from boinc_gahp.api.progress import Show
    from boinc_gahp.errors import GahpError
    from boinc_gahp.quantities import Duration
    from boinc_gahp.submit.types import Parameter


T = TypeVar("T")
R = TypeVar("R")

#: Seconds between two calls of a function that shows the progress.
_PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class JobResult:
    """What came of a job that is done.

    Attributes:
        name: the job's name.
        parameters: the values of its row, by their columns.
        folder: the folder with its outputs.
        outputs: the paths of its outputs by their open names.
        exit_status: its exit status, or that of its program; negative if a signal ended this. None
            if it is not known.
        failure: why its program counts as failed, on one line; "" if it does not.
    """

    name: str
    parameters: Mapping[str, Parameter]
    folder: Path
    outputs: Mapping[str, Path]
    exit_status: int | None = None
    failure: str = field(default="", repr=False)
    _stdout: str | None = field(default=None, repr=False)
    _stderr: str | None = field(default=None, repr=False)

    @property
    def stdout(self) -> str:
        """What its program wrote to standard output; "" if it runs an app, which keeps none."""
        return self._text(self._stdout)

    @property
    def stderr(self) -> str:
        """What it wrote to its stderr; "" if nothing."""
        return self._text(self._stderr)

    def _text(self, name: str | None) -> str:
        if name is not None:
            with suppress(FileNotFoundError):
                return (self.folder / name).read_text("utf-8", "replace")
        return ""

    @classmethod
    def of(
        cls, name: str, parameters: Mapping[str, Parameter], folder: Path, note: FetchRecord
    ) -> JobResult:
        """Return the result of a job whose outputs are in a folder, as its note lists them.

        :meta private:
        """
        outputs = {each: folder / path for each, path in note.outputs.items()}
        status = note.exit_status
        if status is None and note.result is not None and not note.failure:
            status = note.result.exit_status
        files = note.stdout, note.stderr
        return cls(name, parameters, folder, outputs, status, note.failure, *files)


class JobFuture(concurrent.futures.Future[T]):
    """The result of a job that may not be over: a :class:`concurrent.futures.Future`.

    Functions of :mod:`concurrent.futures` take it, such as ``wait`` and ``as_completed``, and so
    does :func:`asyncio.wrap_future`; a coroutine can ``await`` it. The job belongs to a batch on
    the project: it goes on when this program ends, and the same call picks it up. Only
    :meth:`abort` ends it.

    Attributes:
        job_name: the job's name.
        parameters: the values of its row, by their columns.
        batch: its batch.
    """

    def __init__(
        self, job_name: str, parameters: Mapping[str, Parameter], gathering: ResultCollector[T]
    ) -> None:
        super().__init__()
        self.job_name = job_name
        self.parameters = parameters
        self._gathering = gathering
        self._dropping = threading.Lock()

    @property
    def batch(self) -> Batch:
        """The job's batch."""
        return cast("Batch", self._gathering.batch)

    def result(self, timeout: Duration | None = None) -> T:
        """Return the result; wait for it at most ``timeout``; None: without limit.

        Raises:
            JobFailed: the job failed, or lacks an output; says why.
            Stopped: the project object was closed before the job was over, or this is a
                child of the process that submitted it.
            OutputError, RpcError: its outputs cannot be written or fetched.
            concurrent.futures.CancelledError: it was aborted with :meth:`abort`.
            TimeoutError: it is not over yet; up to Python 3.10 that of ``concurrent.futures``.
        """
        with self._waiting(timeout) as seconds:
            return super().result(seconds)

    def exception(self, timeout: Duration | None = None) -> BaseException | None:
        """Return what :meth:`result` would raise, when the job is over; None: the job is done.

        Raises:
            concurrent.futures.CancelledError: it was aborted with :meth:`abort`.
            TimeoutError: as for :meth:`result`.
        """
        with self._waiting(timeout) as seconds:
            return super().exception(seconds)

    @contextmanager
    def _waiting(self, timeout: Duration | None) -> Iterator[float | None]:
        """Say which job was cancelled: the error of ``concurrent.futures`` has no words."""
        # A number may be negative, as in other futures: it is what is left of some time.
        seconds = seconds_of(timeout) if isinstance(timeout, str) else timeout
        if not self.done():
            self._gathering.check_process()
        try:
            yield seconds
        except concurrent.futures.CancelledError:
            raise concurrent.futures.CancelledError(
                f"job {self.job_name!r} of {self.batch.called} was aborted from here"
            ) from None

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the result in a coroutine."""
        import asyncio  # noqa: PLC0415  (few programs have it)

        return asyncio.wrap_future(self).__await__()

    def cancel(self) -> bool:
        """Return False: the job was sent, and goes on; True only after :meth:`abort`.

        So does the future of an executor whose call runs. asyncio calls this when it stops waiting,
        after Ctrl-C or a time-out.
        """
        return self.cancelled()

    def abort(self) -> bool:
        """Abort the job on the project; return whether the future is cancelled.

        It is not if its result is here already. To abort many, use :meth:`JobFutures.abort`, which
        needs one request. Both ask the project, so a coroutine calls them in a thread.

        Raises:
            RpcError: the project could not be asked, or refused; nothing is cancelled.
        """
        if not self.done():
            self._gathering.abort(self.job_name)
            self.drop()
        return self.cancelled()

    def drop(self) -> None:
        """Mark the future as cancelled, unless it is over.

        :meta private:
        """
        with self._dropping:
            if not self.done() and super().cancel():
                # Waiting threads are told by this only.
                self.set_running_or_notify_cancel()

    def __repr__(self) -> str:
        return f"<JobFuture {self.job_name!r} {self._words()}>"

    def _words(self) -> str:
        if not self.done():
            return "pending"
        if self.cancelled():
            return "cancelled"
        error = super().exception()
        return "done" if error is None else f"failed: {error}"


class JobFutures(Sequence[JobFuture[T]], Generic[T]):
    """The futures of a batch's jobs, in the order of the jobs.

    A thread of this process fetches the jobs' outputs as they come. It ends with the process, or
    when the project object is closed; the jobs go on.

    Attributes:
        batch: the batch; other threads can abort it, or retry failed jobs.
        directory: where the folders of the jobs are.
    """

    def __init__(
        self,
        batch: Batch,
        jobs: Iterable[tuple[str, Mapping[str, Parameter]]],
        directory: Path,
        make: Callable[[JobResult], T],
        *,
        poll: Poll = Poll(),  # noqa: B008  (frozen)
    ) -> None:
        self.batch = batch
        self.directory = directory
        parameters = dict(jobs)

        def made(name: str, folder: Path, note: FetchRecord) -> T:
            return make(JobResult.of(name, parameters[name], folder, note))

        self._gathering: ResultCollector[T] = ResultCollector(batch, directory, made, poll)
        self._futures = [JobFuture(*each, self._gathering) for each in parameters.items()]
        self._gathering.start({each.job_name: each for each in self._futures})

    # -- the sequence

    @overload
    def __getitem__(self, index: int) -> JobFuture[T]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[JobFuture[T]]: ...

    def __getitem__(self, index: int | slice) -> JobFuture[T] | Sequence[JobFuture[T]]:
        """Return the future of a job, by its number."""
        return self._futures[index]

    def __len__(self) -> int:
        """How many jobs there are."""
        return len(self._futures)

    def __bool__(self) -> bool:
        """True, also without jobs."""
        return True

    # -- waiting

    def wait(
        self,
        timeout: Duration | None = None,
        *,
        progress: Callable[[Self], None] | bool | None = None,
    ) -> Self:
        """Wait until every future has its result, or an error; return this object.

        Args:
            timeout: such as ``"2h"``; None: no limit.
            progress: called with this object from time to time; an exception that it raises ends
                the wait. True: shown on a terminal (stderr) or in a notebook.

        Raises:
            TimeoutError: some are not over yet; their jobs go on.
        """
        seconds = seconds_of(timeout)
        until = None if seconds is None else time.monotonic() + seconds
        with shown(cast("Any", progress), _view) as report:
            while not self._gathering.wait(_PAUSE, until):
                if report is not None:
                    report(self)
                if until is not None and time.monotonic() >= until:
                    trouble = self.trouble
                    why = "" if trouble is None else f"; the last attempt failed: {trouble}"
                    raise TimeoutError(
                        f"{len(self) - self.here:,} of {len(self):,} results of "
                        f"{self.batch.called} are not here after {seconds:g} s: its jobs continue "
                        f"on the project{why}"
                    )
            if report is not None:
                report(self)
        return self

    def results(
        self,
        timeout: Duration | None = None,
        *,
        progress: Callable[[Self], None] | bool | None = None,
    ) -> list[T]:
        """Wait for all jobs, and return their results in the order of the jobs.

        Args:
            timeout: as for :meth:`wait`.
            progress: as for :meth:`wait`.

        Raises:
            JobFailed: the first of the jobs that failed; :meth:`JobFuture.exception` has the error
                of each.
            TimeoutError: some are not over yet; their jobs go on.
            GahpError: as :meth:`JobFuture.result`.
        """
        self.wait(timeout, progress=progress)
        return [future.result() for future in self._futures]

    def as_completed(self, timeout: Duration | None = None) -> Iterator[JobFuture[T]]:
        """Yield the futures as they get their results, or errors.

        Args:
            timeout: such as ``"2h"``, for all; None: no limit.

        Raises:
            TimeoutError: some are not over yet; up to Python 3.10 that of ``concurrent.futures``.
        """
        seconds = seconds_of(timeout)
        self._gathering.check_process()
        for future in concurrent.futures.as_completed(self._futures, seconds):
            yield cast("JobFuture[T]", future)

    @property
    def here(self) -> int:
        """How many of the futures have their result, or an error."""
        return sum(future.done() for future in self._futures)

    @property
    def trouble(self) -> GahpError | None:
        """Why the project could not be asked, or results not be fetched, the last time; or None."""
        return self._gathering.trouble or self.batch.trouble

    @property
    def failed(self) -> list[JobFuture[T]]:
        """The futures that have an error, in the order of the jobs."""
        return [
            each
            for each in self._futures
            if each.done() and not each.cancelled() and each.exception() is not None
        ]

    # -- acting on them

    def abort(self) -> None:
        """Abort the batch, and cancel all futures that are not over.

        Jobs that are done, but not fetched yet, are cancelled, too.

        Raises:
            BatchConflict: a submit that is still running keeps undoing the abort.
            RpcError: the project could not be asked, or refused; nothing is cancelled.
        """
        self._gathering.abort()
        for future in self._futures:
            future.drop()

    def __repr__(self) -> str:
        text = f"<JobFutures {self.batch.name!r} {self.here}/{len(self)} here"
        cancelled = sum(each.cancelled() for each in self._futures)
        for number, what in ((len(self.failed), "failed"), (cancelled, "cancelled")):
            text += f", {number} {what}" if number else ""
        return f"{text}>"


def _view(show: Show) -> Callable[[JobFutures[Any]], None]:
    return lambda futures: show_results(show, futures.batch, futures.here, futures.trouble)
