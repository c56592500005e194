"""A batch: a handle that asks the project, and remembers what it was told last."""

from __future__ import annotations

import html
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.remote import controlling, fetching, finding, leases, watching
from boinc_gahp.remote.job import BatchJob
from boinc_gahp.remote.types import JobState
from boinc_gahp.remote.watching import Forecast, Poll
from boinc_gahp.rpc import BatchState

if TYPE_CHECKING:
    import os
    import threading
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from boinc_gahp import rpc
    from boinc_gahp.errors import GahpError
    from boinc_gahp.remote.fetching import Fetched, FetchedZip, JobFailure
    from boinc_gahp.remote.project import Project
    from boinc_gahp.remote.types import OnProgress

_OVER = (BatchState.COMPLETE, BatchState.ABORTED, BatchState.RETIRED)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs of a batch are in which state."""

    queued: int = 0
    in_progress: int = 0
    done: int = 0
    failed: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.queued + self.in_progress + self.done + self.failed + self.unknown


class Batch:
    """A batch of one's own on a project; made by :class:`Project`, never by its class.

    What its attributes say is what the project told when it was last asked: by :meth:`refresh`,
    :meth:`wait`, :meth:`Project.watch`. It is acted on by its id, so that another batch of the same
    name, or one whose name the project thinks is the same, is never meant by mistake. Thread-safe.
    Handles of the same batch are equal, whatever they were told when.

    Attributes:
        project: where it is.
        info: all that was told of it last.
        trouble: why the project could not be asked when it was tried last; None if it was.
        gone: whether the project does not know it any more.
        existed: whether the :meth:`Project.submit` that gave it found it there with all of its
            jobs, by their names, and sent nothing.
        compared: whether that submit knows that its jobs have the same arguments and files, from
            what was written down on this machine.
    """

    def __init__(self, project: Project, info: rpc.BatchInfo) -> None:
        self.project = project
        self.info = info
        self.trouble: GahpError | None = None
        self.gone = False
        self.existed = False
        self.compared = False
        #: A time of time.monotonic() before which its lease is not renewed.
        self.renew_from = 0.0
        self._forecast = Forecast()
        self._forecast.see(info)

    # -- what it is

    @property
    def id(self) -> int:
        """The project's number for it."""
        return self.info.id

    @property
    def name(self) -> str:
        """Its name; others may have the same."""
        return self.info.name

    @property
    def app_name(self) -> str:
        """The app that its jobs run."""
        return self.info.app_name

    @property
    def state(self) -> BatchState:
        """Its state as the project counts it."""
        return self.info.state

    @property
    def is_over(self) -> bool:
        """Whether nothing will change by itself any more."""
        # Jobs come into a batch before it is in progress: without any it stays so for ever
        # (web-rpcs.rst, "submit_batch").
        is_empty = self.state is BatchState.IN_PROGRESS and not self.njobs
        return self.gone or is_empty or self.state in _OVER

    @property
    def njobs(self) -> int:
        """How many jobs it has, or was meant to have while it is being submitted."""
        return self.info.njobs

    @property
    def nerror_jobs(self) -> int:
        """How many of its jobs failed or were aborted."""
        return self.info.nerror_jobs

    @property
    def fraction_done(self) -> float:
        """Between 0 and 1: the part of its jobs that are done or have failed."""
        return self.info.fraction_done

    @property
    def nover(self) -> int:
        """How many of its jobs are done or have failed."""
        return min(self.njobs, round(self.fraction_done * self.njobs))

    @property
    def create_time(self) -> float:
        """When it was made, in seconds since the epoch, by the project's clock."""
        return self.info.create_time

    @property
    def expire_time(self) -> float | None:
        """When its lease ends: then the project may abort and retire it; None: never.

        :meth:`wait`, :meth:`Project.watch`, :meth:`fetch` and :meth:`fetch_zip` renew it for
        ``[jobs] batch_lease`` seconds, and :meth:`extend` sets it.
        """
        return self.info.expire_time or None

    @property
    def lease_is_over(self) -> bool:
        """Whether it was aborted or retired, and its lease was over by now: that may be why."""
        ended = self.state in (BatchState.ABORTED, BatchState.RETIRED)
        return ended and 0 < self.info.expire_time <= time.time()

    @property
    def completion_time(self) -> float | None:
        """When its last job was over, by the project's clock; None: not yet, or not told."""
        return self.info.completion_time or None

    @property
    def expected_end(self) -> float | None:
        """When its last job may be over, in seconds since the epoch; None: nobody can tell."""
        return None if self.is_over else self._forecast.end

    # -- asking

    def refresh(self) -> Batch:
        """Ask the project for news; return the same object.

        Raises:
            NoSuchBatch: it is gone: the project has deleted it.
            RpcError: the project could not be asked.
        """
        self.see(finding.by_id(self.project.session, self.id, self.njobs))
        return self

    def jobs(self, which: Iterable[int | str] | None = None) -> Iterator[BatchJob]:
        """Yield the jobs in the order of their submission, as they stream in.

        However many there are, little memory is needed. A reply that was cut off is asked for
        again; it never looks like a batch with fewer jobs.

        Args:
            which: names and ids of some jobs, to have these alone, in this order and each once,
                for the price of one look at the batch; None: all.

        Raises:
            NoSuchJob: the batch has none that is called so.
            RpcError: the project could not be asked.
        """
        if which is None:
            found = self.project.rpc.iter_jobs(self.id)
        else:
            found = iter(finding.jobs(self.project.session, self.id, self.name, which))
        for info in found:
            yield BatchJob(self, info)

    def job(self, which: int | str) -> BatchJob:
        """Return one job, by its name or its id.

        Raises:
            NoSuchJob: the batch has none; says which one might have been meant.
            RpcError: the project could not be asked.
        """
        return BatchJob(self, finding.job(self.project.session, self.id, self.name, which))

    def counts(self) -> Counts:
        """Count the jobs by their states; the project is asked for all of them."""
        found = dict.fromkeys(JobState, 0)
        for info in self.project.rpc.iter_jobs(self.id):
            found[info.state] += 1
        return Counts(
            queued=found[JobState.QUEUED],
            in_progress=found[JobState.IN_PROGRESS],
            done=found[JobState.DONE],
            failed=found[JobState.FAILED],
            unknown=found[JobState.UNKNOWN],
        )

    def cpu_time(self) -> float:
        """Return the seconds of processor time of all instances so far; the project is asked.

        Time on graphics cards is not in it (BOINC's "RemoteJobs", "boinc_query_batch").
        """
        return self.project.rpc.batch(self.id, get_cpu_time=True).total_cpu_time or 0.0

    def wait(
        self,
        *,
        timeout: float | None = None,
        progress: Callable[[Batch], None] | None = None,
        poll: Poll = Poll(),  # noqa: B008  (frozen)
    ) -> Batch:
        """Wait until the batch is over: complete, aborted, retired, or gone.

        Meanwhile its lease is renewed, so that the project does not end it.

        A project that is down is waited for: ``progress`` is called all the same, and
        :attr:`trouble` says what is wrong.

        Args:
            timeout: seconds; None: as long as it takes.
            progress: called with this batch after every look at it; what it raises ends the wait.
            poll: how often to look.

        Raises:
            TimeoutError: it is not over by then; it goes on nevertheless.
            PermissionDenied: the project does not let the account look (any more).
            RpcError: the project was closed meanwhile.
        """
        return watching.wait(self, timeout=timeout, progress=progress, poll=poll)

    # -- outputs

    def fetch(
        self,
        directory: str | os.PathLike[str],
        *,
        jobs: Iterable[int | str | BatchJob] | int | str | BatchJob | None = None,
        threads: int = 4,
        progress: OnProgress | None = None,
        stop: threading.Event | None = None,
        again: bool = False,
        stderr: bool = True,
    ) -> Fetched:
        """Fetch the outputs of jobs that are done, each job's into a folder of its name.

        Broken off at any moment, it brings what is lacking when it is called again; jobs that are
        not done yet are left for then. See :func:`boinc_gahp.remote.fetching.fetch`.

        Args:
            directory: is made if it is missing.
            jobs: names, ids or handles, or one of them; None: all.
            threads: how many jobs are fetched at a time.
            progress: told how far it is.
            stop: set, by any thread, it ends the fetch soon.
            again: fetch also what is there.
            stderr: whether to fetch what jobs wrote to stderr, which costs one RPC more a job.

        Raises:
            NoSuchJob: one of ``jobs`` does not exist; nothing was fetched.
            OutputError: the directory cannot be made or written, or the disk is full.
            RpcError: the project is down or away, or refuses the account.
            TemplateError: the app's output template cannot be read.
        """
        leases.renew(self, stale=True)
        return fetching.fetch(
            self.project.session,
            self.id,
            self.name,
            self.app_name,
            directory,
            jobs=_several(jobs),
            threads=threads,
            progress=progress,
            stop=stop,
            again=again,
            stderr=stderr,
        )

    def fetch_zip(
        self,
        path: str | os.PathLike[str],
        *,
        jobs: Iterable[int | str | BatchJob] | int | str | BatchJob | None = None,
        threads: int = 4,
        progress: OnProgress | None = None,
        stderr: bool = True,
    ) -> FetchedZip:
        """Fetch the outputs of jobs that are done as one archive; it cannot be resumed.

        See :func:`boinc_gahp.remote.fetching.fetch_zip`, and :meth:`fetch` for the arguments and
        errors.
        """
        leases.renew(self, stale=True)
        return fetching.fetch_zip(
            self.project.session,
            self.id,
            self.name,
            self.app_name,
            path,
            jobs=_several(jobs),
            threads=threads,
            progress=progress,
            stderr=stderr,
        )

    def failures(
        self, *, jobs: Iterable[int | str | BatchJob] | int | str | BatchJob | None = None
    ) -> Iterator[JobFailure]:
        """Yield what is known of each job that failed, as it is asked.

        Raises:
            NoSuchJob: one of ``jobs`` does not exist.
            RpcError: the project could not be asked.
        """
        return fetching.failures(self.project.session, self.id, self.name, jobs=_several(jobs))

    # -- acting on it

    def abort(
        self, jobs: Iterable[int | str | BatchJob] | int | str | BatchJob | None = None
    ) -> None:
        """Abort the batch, or some of its jobs; jobs that are over stay as they are.

        Args:
            jobs: names, ids or handles, or one of them; None: the whole batch.

        Raises:
            NoSuchJob: the batch has no such job; none was aborted.
            BatchConflict: a submit that is still running goes on undoing it.
            RpcError: the project could not be asked, or refuses.
        """
        several = _several(jobs)
        if several is None:
            controlling.abort(self)
        else:
            controlling.abort_jobs(self, several)

    def retire(self) -> None:
        """Give the batch's files and records free to be deleted; what is left of it is aborted.

        Outputs that were not fetched may be gone at once. Harmless to repeat.

        Raises:
            RpcError: the project could not be asked, or refuses.
        """
        controlling.retire(self)

    def extend(self, until: float) -> None:
        """Keep the batch until then: after it the project may abort and retire the batch.

        Args:
            until: seconds since the epoch; ``math.inf``: for ever.

        Raises:
            BadRequest: that is no time to come.
            RpcError: the project could not be asked, or refuses.
        """
        controlling.extend(self, until)

    # -- for people

    def see(self, info: rpc.BatchInfo) -> bool:
        """Take what the project tells; return whether it is other than what was known.

        :meta private:
        """
        changed = self.info != info or self.trouble is not None or self.gone
        self.info, self.trouble, self.gone = info, None, False
        self._forecast.see(info)
        return changed

    def vanish(self) -> None:
        """Note that the project does not know the batch any more.

        :meta private:
        """
        self.gone, self.trouble = True, None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return (self.project.url, self.id) == (other.project.url, other.id)

    def __hash__(self) -> int:
        return hash((self.project.url, self.id))

    def __repr__(self) -> str:
        words = [f"<Batch {self.id} {self.name!r} {self.state.name.lower()}"]
        words.append(f"{self.nover}/{self.njobs} jobs")
        text = " ".join(words)
        if self.nerror_jobs:
            text += f", {self.nerror_jobs} failed"
        if self.gone:
            text += ", gone"
        return text + ">"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        done = self.nover - self.nerror_jobs
        rows: list[tuple[str, Any]] = [
            ("batch", f"{self.name} (id {self.id})"),
            ("project", self.project.url),
            ("app", self.app_name),
            ("state", self.state.words),
            ("jobs", f"{done} done, {self.nerror_jobs} failed, of {self.njobs}"),
        ]
        cells = "".join(
            f'<tr><th style="text-align:left">{head}</th>'
            f'<td style="text-align:left">{html.escape(str(text))}</td></tr>'
            for head, text in rows
        )
        bar = f'<progress max="1" value="{self.fraction_done:.4f}"></progress>'
        return f"<table>{cells}<tr><th></th><td>{bar}</td></tr></table>"


def _several(
    jobs: Iterable[int | str | BatchJob] | int | str | BatchJob | None,
) -> list[int | str] | None:
    """Return names and ids of jobs; also of one alone, since a name is an iterable, too."""
    if jobs is None:
        return None
    each = [jobs] if isinstance(jobs, (int, str, BatchJob)) else jobs
    return [job.id if isinstance(job, BatchJob) else job for job in each]
