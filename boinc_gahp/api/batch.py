"""Batches and their jobs: the handles that ask the project."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.api import control, family, finding, watching
from boinc_gahp.api.known_batch import Counts, KnownBatch
from boinc_gahp.api.outputs import fetching, logs, records
from boinc_gahp.api.outputs.folders import folder_name
from boinc_gahp.api.outputs.logs import log_of
from boinc_gahp.api.progress import StepView, shown, waiting_view
from boinc_gahp.api.watching import Poll
from boinc_gahp.errors import NoSuchJob, NotKnownHere, OutputError
from boinc_gahp.fetch.failures import look_up_failure
from boinc_gahp.quantities import seconds_of
from boinc_gahp.states import JobState

if TYPE_CHECKING:
    import os
    import threading
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any, TypeAlias

    from boinc_gahp.api.family import RetryChain
    from boinc_gahp.api.manifest import SubmittedInput, SubmittedJob
    from boinc_gahp.api.outputs.fetching import Fetched
    from boinc_gahp.api.outputs.folders import FetchRecord
    from boinc_gahp.api.outputs.logs import Reason
    from boinc_gahp.api.project import Project
    from boinc_gahp.fetch.job_end import JobEnd
    from boinc_gahp.quantities import Duration
    from boinc_gahp.rpc.types import BatchInfo, JobInfo, ResultInfo
    from boinc_gahp.submit.types import OnProgress, Parameter

    #: Names, ids or handles of jobs, or one of them.
    AnyJobs: TypeAlias = "Iterable[int | str | BatchJob] | int | str | BatchJob"


class Batch(KnownBatch):
    """One of the account's batches, as methods of :class:`Project` return it.

    Its attributes say what the project answered when it was last asked: by :meth:`refresh`,
    :meth:`wait` or :meth:`Project.watch`. All requests use the batch's id, so another batch whose
    name is the same, or the same for the project, is never touched by mistake. Thread-safe. Handles
    of the same batch are equal, even if one of them is out of date.

    Attributes:
        project: the project.
        info: the project's last answer about the batch.
        trouble: why the last attempt to ask the project failed; None if it succeeded.
        gone: whether the project no longer knows the batch.
        lease_trouble: why the lease could not be renewed; None if that is not so.
        existed: whether :meth:`Project.submit` found the batch with all of its jobs, by their
            names, and sent nothing.
        compared: whether submit knows, from its records on this machine, that the jobs have the
            same arguments and files.
    """

    def __init__(self, project: Project, info: BatchInfo) -> None:
        super().__init__(project.session, info)
        self.project = project

    # -- asking

    def refresh(self) -> Batch:
        """Ask the project about the batch; return the same object.

        Raises:
            NoSuchBatch: the project has deleted the batch.
            RpcError: the project could not be asked.
        """
        return control.refresh(self)

    def jobs(self, which: Iterable[int | str] | None = None) -> Iterator[BatchJob]:
        """Yield the jobs in the order of their submission, as the reply arrives.

        This needs little memory even for many jobs. A reply that was cut off is requested again; it
        is never taken for a batch with fewer jobs.

        Args:
            which: names and ids of jobs: yields only these, in this order, each once, with one
                query of the batch; None: all jobs.

        Raises:
            NoSuchJob: the batch has no job of one of these names or ids.
            RpcError: the project could not be asked.
        """
        for info in finding.find_jobs(self, which):
            yield BatchJob(self, info)

    def job(self, which: int | str) -> BatchJob:
        """Return one job, by its name or its id.

        Raises:
            NoSuchJob: the batch has no such job; suggests similar names.
            RpcError: the project could not be asked.
        """
        return next(self.jobs([which]))

    def __iter__(self) -> Iterator[BatchJob]:
        """Yield all jobs; see :meth:`jobs`."""
        return self.jobs()

    def __getitem__(self, which: int | str) -> BatchJob:
        """Return one job; see :meth:`job`."""
        return self.job(which)

    def __contains__(self, which: object) -> bool:
        """Whether the batch has a job of this name or id, or this job; asks the project."""
        if isinstance(which, BatchJob):
            return which.batch == self
        if not isinstance(which, (int, str)):
            return False
        try:
            self.job(which)
        except NoSuchJob:
            return False
        return True

    def to_records(self, jobs: AnyJobs | None = None) -> list[dict[str, Any]]:
        """Return what is known of each job as a flat dict, as ``pandas.DataFrame`` takes it.

        All have the same keys: ``job`` (its name), a key for each parameter, ``args`` (as a shell
        splits it), ``input:NAME`` and ``md5:NAME`` for each input, ``state``, ``exit_status``,
        ``cpu_time`` and ``elapsed_time`` in seconds, ``why`` it failed, ``attempts`` (how often it
        was sent), and ``folder``, the path of its outputs. A parameter that has one of these names
        gets the key ``parameter:NAME``. What is not known is None: exit statuses (of jobs that are
        done), elapsed times and folders before a :meth:`fetch`, and everything that was submitted
        on other machines. A project does not tell which computers ran a job. It is asked once, and
        if a job has failed, once more for each retry. A job that was sent again counts as its retry
        does.

        Args:
            jobs: names, ids or handles, or one of them; None: all.

        Raises:
            NoSuchJob: one of ``jobs`` does not exist.
            RpcError: the project could not be asked.
        """
        return records.records(self, *self._as_they_count(jobs))

    def counts(self) -> Counts:
        """Count the jobs by their states; asks the project for all jobs."""
        found = Counter(info.state for info in self.project.rpc.iter_jobs(self.id))
        return Counts(**{state.name.lower(): found[state] for state in JobState})

    def cpu_time(self) -> float:
        """Return the processor time of all instances so far, in seconds; asks the project.

        Time on graphics cards is not counted (BOINC's "RemoteJobs", "boinc_query_batch").
        """
        return self.project.rpc.batch(self.id, get_cpu_time=True).total_cpu_time or 0.0

    def wait(
        self,
        timeout: Duration | None = None,
        *,
        progress: Callable[[Batch], None] | bool | None = None,
        poll: Poll = Poll(),  # noqa: B008  (frozen)
    ) -> Batch:
        """Wait until the batch is over: complete, aborted, retired, or gone.

        Renews the lease meanwhile, so that the project does not end the batch.

        If the project is down, the wait goes on: ``progress`` is still called, and :attr:`trouble`
        says what is wrong.

        Args:
            timeout: such as ``"2h"``; None: no limit.
            progress: called with this batch after each poll; an exception that it raises ends
                the wait. True: shown on a terminal (stderr) or in a notebook.
            poll: how often to ask.

        Raises:
            TimeoutError: the batch is not over yet; its jobs go on.
            PermissionDenied: the project does not let the account look at the batch (any more).
            RpcError: the project object was closed meanwhile.
        """
        seconds = seconds_of(timeout)
        until = None if seconds is None else time.monotonic() + seconds
        with shown(progress, waiting_view) as report:
            for _ in watching.watch(self.session, [self], poll=poll, until=until):
                if report is not None:
                    report(self)
        if not self.is_over:
            trouble = "" if self.trouble is None else f"; the last query failed: {self.trouble}"
            raise TimeoutError(
                f"{self.called} is not over after {seconds:g} s: {self.nover} of {self.njobs} jobs "
                f"are; it continues on the project{trouble}"
            )
        return self

    # -- outputs

    def fetch(
        self,
        directory: str | os.PathLike[str],
        *,
        jobs: AnyJobs | None = None,
        threads: int = 4,
        progress: OnProgress | bool | None = None,
        stop: threading.Event | None = None,
        again: bool = False,
        stderr: bool = True,
    ) -> Fetched:
        """Fetch the outputs of the jobs that are done, each job's into a folder of its name.

        If it is interrupted, call it again: it fetches what is missing, and jobs that have become
        done since. See :func:`boinc_gahp.api.outputs.fetching.fetch`.

        Args:
            directory: created if it is missing.
            jobs: names, ids or handles, or one of them; None: all.
            threads: how many jobs are fetched at a time.
            progress: called in the calling thread with the number of jobs done and the bytes
                received; the total of bytes is unknown, so it equals the bytes received. True:
                shown on a terminal (stderr) or in a notebook.
            stop: an event that any thread can set to end the fetch soon.
            again: fetch also what is already there.
            stderr: whether to fetch the jobs' stderr, which costs one more RPC per job.

        Raises:
            NoSuchJob: one of ``jobs`` does not exist; nothing was fetched.
            OutputError: the directory cannot be created or written, or the disk is full.
            RpcError: the project is down or away, or refuses the account.
            TemplateError: the app's output template cannot be read.
        """
        control.renew(self, stale=True)
        with shown(progress, StepView) as report:
            return fetching.fetch(
                self,
                directory,
                *self._as_they_count(jobs),
                threads=threads,
                progress=report,
                stop=stop,
                again=again,
                stderr=stderr,
            )

    def fetch_zip(
        self,
        path: str | os.PathLike[str],
        *,
        jobs: AnyJobs | None = None,
        threads: int = 4,
        progress: OnProgress | bool | None = None,
        stderr: bool = True,
    ) -> Fetched:
        """Fetch the outputs of the jobs that are done as one zip archive; cannot be resumed.

        See :func:`boinc_gahp.api.outputs.fetching.fetch_zip`. The archive's directory must exist;
        the other arguments and the errors are those of :meth:`fetch`.
        """
        control.renew(self, stale=True)
        with shown(progress, StepView) as report:
            return fetching.fetch_zip(
                self,
                path,
                *self._as_they_count(jobs),
                threads=threads,
                progress=report,
                stderr=stderr,
            )

    def _as_they_count(self, jobs: AnyJobs | None) -> tuple[list[JobInfo], RetryChain]:
        """Ask for jobs, of which those that failed count as their retries do."""
        return family.with_retries(self, finding.find_jobs(self, _several(jobs)))

    def reasons(
        self,
        *,
        jobs: AnyJobs | None = None,
        stderr: bool = True,
    ) -> list[Reason]:
        """Return the distinct reasons for which jobs failed, the most frequent first.

        Jobs that were sent again (:meth:`retry`), and are done or not over, are left out. The
        project is asked once for all jobs, once for each retry, and then about one job for each of
        the five most frequent reasons.

        Args:
            jobs: names, ids or handles, or one of them; None: all.
            stderr: whether to ask about these jobs: for the last line of the stderr, which few
                projects tell, and for what became of the instances.

        Raises:
            NoSuchJob: one of ``jobs`` does not exist.
            RpcError: the project could not be asked.
        """
        failed = family.standing_of(self, _several(jobs)).failed
        return logs.reasons(self, failed, stderr=stderr)

    def logs(self, jobs: AnyJobs | None = None) -> Iterator[JobEnd]:
        """Yield how each job ended, with its stderr; asks the project job by job.

        Args:
            jobs: names, ids or handles, or one of them; None: all.

        Raises:
            NoSuchJob: one of ``jobs`` does not exist.
            RpcError: the project could not be asked, or stopped answering.
        """
        return logs.logs_of(self, jobs=_several(jobs))

    # -- again

    def retry(
        self,
        jobs: AnyJobs | None = None,
        *,
        progress: OnProgress | bool | None = None,
    ) -> Batch | None:
        """Send the jobs that failed again, as a batch of its own; return it.

        The new batch is called ``<name>-retry1``, the next one ``<name>-retry2``, and so on; each
        of its jobs has the name of the job that it repeats, with the same ending. A job is sent
        again if it failed, and all of its retries have failed, too. :meth:`fetch` of this batch
        then puts the outputs of a retry into the folder of the job that it repeats. A retry of a
        retry repeats the first batch.

        Each job is sent once, even if this is called twice at the same time, or again after the
        program was killed: then it completes what was begun, or finds it done.

        Arguments, files and templates, and what was set for the whole batch, are those of the first
        time. This machine has to know them: only the one that submitted the batch does. A file
        that has changed is replaced by the project's copy. The lease of this batch is renewed.

        Args:
            jobs: names, ids or handles of jobs that failed, or one of them; None: all that failed.
            progress: as for :meth:`Project.submit`.

        Returns:
            None if there is nothing to send: no job has failed, or all are sent again and have not
            failed again. The handle of a retry that was interrupted may have fewer jobs than
            failed since then: call it again for the others.

        Raises:
            NoSuchJob: the batch has no such job.
            NotKnownHere: this machine does not know what was submitted.
            BatchConflict: one of ``jobs`` has not failed.
            StagingError: an input file has changed, and the project no longer has it.
            JobRefused, NotFound, PermissionDenied, TemplateError, RpcError: as
                :meth:`Project.submit`.
        """
        with shown(progress, StepView) as report:
            sent = control.retry(self, _several(jobs), progress=report)
        return None if sent is None else control.submitted(Batch(self.project, sent.info), sent)

    def retries(self) -> list[Batch]:
        """Return the batches that :meth:`retry` has made of this one, in their order.

        Asks the project once for each of them, and once more. Retired ones are among them as long
        as the project knows them.

        Raises:
            RpcError: the project could not be asked.
        """
        found = family.family_of(self).retries
        return [Batch(self.project, each.info) for each in found]

    # -- acting on it

    def abort(self, jobs: AnyJobs | None = None) -> None:
        """Abort the batch, or some of its jobs; jobs that are over do not change.

        Args:
            jobs: names, ids or handles, or one of them; None: the whole batch.

        Raises:
            NoSuchJob: the batch has no such job; no job was aborted.
            BatchConflict: a submit that is still running keeps undoing the abort.
            RpcError: the project could not be asked, or refused.
        """
        several = _several(jobs)
        if several is None:
            control.abort(self)
        else:
            control.abort_jobs(self, several)

    def retire(self) -> None:
        """Let the project delete the batch's files and records; unfinished jobs are aborted.

        Outputs that were not fetched may be deleted at once. Calling it again does no harm.

        Raises:
            RpcError: the project could not be asked, or refused.
        """
        control.retire(self)

    def extend(self, until: float | str) -> None:
        """Set the lease: after this time the project may abort and retire the batch.

        Args:
            until: a text says how long from now, such as ``"60d"``; a number is a time in seconds
                since the epoch, with ``math.inf`` for ever.

        Raises:
            BadRequest: the time is not in the future, or the text is not a time span.
            RpcError: the project could not be asked, or refused.
        """
        control.extend(self, until)


def _several(jobs: AnyJobs | None) -> list[int | str] | None:
    """Return names and ids of jobs as a list; a single name counts as one job, not as letters."""
    if jobs is None:
        return None
    each = [jobs] if isinstance(jobs, (int, str, BatchJob)) else jobs
    return [job.id if isinstance(job, BatchJob) else job for job in each]


class BatchJob:
    """A job of a batch, as the project described it when it was asked.

    Attributes:
        batch: the job's batch.
        info: the values from the reply.
        id: the job's number on the project (its workunit).
        name: unique over the whole project.
        state: the job's state when the project was asked.
        canonical_instance_id: the instance whose outputs count; 0 if there is none yet.
        errors: the project's words for what went wrong ("too_many_error_results", "cancelled").
        exit_statuses: of a failed job: one for each instance that failed.
        cpu_time: seconds used by the canonical instance; None if there is none yet.
    """

    def __init__(self, batch: Batch, info: JobInfo) -> None:
        self.batch = batch
        self.info = info
        self.id, self.name, self.state = info.id, info.name, info.state
        self.canonical_instance_id = info.canonical_instance_id
        self.errors, self.exit_statuses = info.errors, info.exit_statuses
        self.cpu_time = info.cpu_time

    @property
    def is_over(self) -> bool:
        """Whether the job is done or has failed."""
        return self.state.is_over

    # -- what was submitted

    @property
    def submitted(self) -> SubmittedJob:
        """All that was submitted for the job.

        Raises:
            NotKnownHere: this machine has no manifest of the batch: another one submitted it, or it
                is retired.
        """
        manifest = self.batch.manifest
        if manifest is None or self.name not in manifest.jobs:
            raise NotKnownHere(
                f"what was submitted for job {self.name!r} of batch {self.batch.name!r} (id "
                f"{self.batch.id}) is not known here: a project does not tell it, and only the "
                "machine that submitted the batch keeps it, until the batch is retired"
            )
        return manifest.job(self.name)

    @property
    def args(self) -> tuple[str, ...]:
        """The words of its arguments; raises NotKnownHere as :attr:`submitted`."""
        return self.submitted.args

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The values of its row, by their columns; raises NotKnownHere as :attr:`submitted`."""
        return self.submitted.parameters

    @property
    def inputs(self) -> Mapping[str, SubmittedInput]:
        """Its input files by their open names, each with its MD5 and where it came from.

        Raises:
            NotKnownHere: as :attr:`submitted`.
        """
        return self.submitted.inputs

    # -- what came of it

    @property
    def folder(self) -> Path:
        """The folder with its outputs, where the batch was last fetched on this machine.

        Raises:
            OutputError: the job was not fetched, or its folder is not there any more; says what to
                call.
        """
        return self._fetched()[0]

    @property
    def outputs(self) -> dict[str, Path]:
        """The paths of its outputs by their open names, where the batch was last fetched.

        Raises:
            OutputError: as :attr:`folder`.
        """
        folder, note = self._fetched()
        return {name: folder / path for name, path in note.outputs.items()}

    @property
    def stderr(self) -> str | None:
        """What the job wrote to its stderr: from its folder, or else the project is asked.

        None: the job is not over, or the project does not tell. Few projects tell the stderr of
        failed jobs (:meth:`Batch.logs`).

        Raises:
            RpcError: the project could not be asked.
        """
        with suppress(OutputError):
            folder, note = self._fetched()
            if note.stderr in note.there(folder):
                return (folder / str(note.stderr)).read_text("utf-8", "replace")
        found = log_of(self.batch, self.info)
        if found.trouble is not None:
            raise found.trouble
        return found.stderr

    def _fetched(self) -> tuple[Path, FetchRecord]:
        """Return its folder and the note there; raises OutputError."""
        batch, root = self.batch, self.batch.directory
        named = f"job {self.name!r} of batch {batch.name!r} (id {batch.id})"
        if root is None:
            raise OutputError(
                f"{named} was not fetched on this machine: call batch.fetch(directory) first"
            )
        note = family.note_of(batch, self.info, root)
        if note is not None:
            return root / folder_name(self.name), note
        if not root.is_dir():
            raise OutputError(
                f"{named} was fetched into {str(root)!r}, which is not there any more: call "
                "batch.fetch(directory) with the directory's new place; that fetches only what is "
                "missing there"
            )
        if self.state is JobState.FAILED:
            raise OutputError(f"{named} failed, so it has no outputs: batch.reasons() tells why")
        if self.state is not JobState.DONE:
            raise OutputError(
                f"{named} is {self.state.value}, so it has no outputs yet: call batch.wait(), then "
                "batch.fetch(directory)"
            )
        raise OutputError(
            f"{named} is not in {str(root)!r}, where the batch was last fetched: call "
            f"batch.fetch({str(root)!r}), which fetches what is missing"
        )

    def instances(self) -> tuple[ResultInfo, ...]:
        """Ask the project for the job's instances; raises RpcError."""
        return self.batch.session.rpc.query_job(self.id)

    def fetch(self, directory: str | os.PathLike[str]) -> Fetched:
        """Fetch the job's outputs into ``directory``; see :meth:`Batch.fetch`."""
        return self.batch.fetch(directory, jobs=[self.name])

    def failure(self) -> JobEnd | None:
        """Ask why the job failed; None if it has not, or is done after all. Raises RpcError."""
        return look_up_failure(self.batch.session.context, self.name, self.batch.id)

    def __repr__(self) -> str:
        more = f", {', '.join(self.errors)}" if self.errors else ""
        return f"<BatchJob {self.id} {self.name!r} {self.state.name.lower()}{more}>"
