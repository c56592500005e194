"""Fetches a batch's finished jobs with several threads: threads, progress, and when to stop.

:mod:`boinc_gahp.api.outputs.folders` decides where a job's files go; the fetch engine
(:mod:`boinc_gahp.fetch.engine`) brings them there.
"""

from __future__ import annotations

import errno
import json
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.api import finding
from boinc_gahp.api.family import failed_programs, program_note, ran_programs
from boinc_gahp.api.outputs.folders import (
    FetchRecord,
    FinishedJob,
    Folder,
    ProgramFolder,
    own_template,
    unknown_template,
)
from boinc_gahp.containers.job_files import ENDING
from boinc_gahp.errors import (
    GahpError,
    OutputError,
    ProtocolError,
    RpcError,
    Stopped,
    TemplatesMissing,
    TransportError,
)
from boinc_gahp.fetch.destinations import CancelScope, Directories, errno_of
from boinc_gahp.fetch.locate import Located
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.states import JobState
from boinc_gahp.submit.types import Progress
from boinc_gahp.threads import in_parallel, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from boinc_gahp.api.family import RetryChain
    from boinc_gahp.api.known_batch import KnownBatch
    from boinc_gahp.api.session import Session
    from boinc_gahp.fetch.engine import FetchedFiles
    from boinc_gahp.submit.types import OnProgress

#: Errors of the operating system after which no other job's outputs can be written, either.
_NO_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.EMFILE}
#: Seconds to find out whether the project still answers, after no answer about one job.
_TIMEOUT = 20.0
#: The fetch is given up after network errors for so many jobs in a row.
_MAX_UNREACHABLE = 5
#: How many jobs are asked about at a time.
_THREADS = 4
#: Seconds between two progress reports, and for threads to end after an interruption.
_PAUSE = 0.1
_LEAVING = 0.5


def finished(job: JobInfo, family: RetryChain | None = None) -> FinishedJob:
    """Return a job that is done, as :func:`~boinc_gahp.api.family.with_retries` lists it.

    Args:
        job: the job.
        family: the retries; None: it is none.
    """
    its = None if family is None else family.of(job)
    if family is None or its is None:
        return FinishedJob(job.name, job.id, job.canonical_instance_id)
    of = its.batch.id, job.name, family.ids(job.name)
    return FinishedJob(its.job.name, job.id, job.canonical_instance_id, *of)


def says_nothing_of_jobs(error: GahpError) -> bool:
    """Tell whether an error is about the project or the way to it: jobs may be asked for again."""
    return error.passes or isinstance(error, (TransportError, ProtocolError))


def check_answers(session: Session, error: RpcError) -> None:
    """Raise an error if the project does not answer at all, or refuses this account.

    ``error`` is the one that came up for a single job.

    Raises:
        RpcError: the project does not answer, or refuses the account.
    """
    if error.concerns:
        raise error
    if isinstance(error, (TransportError, ProtocolError)):
        try:
            session.rpc.until(time.monotonic() + _TIMEOUT).ping()
        except RpcError as trouble:
            raise trouble from error


class BatchFetch:
    """Fetches jobs of one batch; used once.

    Args:
        batch: the batch.
        jobs: those to fetch.
        progress: called with the progress, by the thread that calls :meth:`each`.
        stop: an event that any thread can set to end the fetch soon.

    Attributes:
        scope: is entered before anything is written; once closed, it raises.
        errors: by job name: errors of single jobs.
        stopped: whether ``stop`` was set before the fetch was finished.
    """

    def __init__(
        self,
        batch: KnownBatch,
        jobs: list[FinishedJob],
        *,
        progress: OnProgress | None,
        stop: threading.Event | None = None,
    ) -> None:
        self.errors: dict[str, GahpError] = {}
        self.stopped = False
        self._batch = batch
        self._session = batch.session
        self._manifest = batch.manifest
        self._asking = threading.Lock()
        #: Whether all jobs ran programs, if there is no manifest; None: this was not asked yet.
        self._programs: bool | None = None
        self._jobs = jobs
        self._progress = progress
        self._counting = threading.Lock()
        #: Jobs that are finished, and bytes that were received; and what was reported of them.
        self._now = (0, 0)
        self._reported: tuple[int, int] | None = None
        self._stop = stop or threading.Event()
        self._halt = threading.Event()
        self._fatal: BaseException | None = None
        self._unreachable = 0
        self.scope = CancelScope(self._halt, self._stop)

    def each(self, work: Callable[[FinishedJob], object], threads: int) -> None:
        """Call ``work`` for every job; errors of single jobs go into :attr:`errors`.

        If it is interrupted, unfinished files are removed; threads that wait for the network end
        later and leave nothing behind.

        Raises:
            GahpError: every other job would fail with it, too.
        """
        ended = threading.Event()

        def run() -> None:
            try:
                in_parallel(one, self._jobs, threads=threads, name="fetch", stop=self._halt)
            except BaseException as error:  # noqa: BLE001  (raised below, in the caller's thread)
                self._fatal = self._fatal or error
            finally:
                ended.set()

        def one(job: FinishedJob) -> None:
            trouble: BaseException | None = None
            try:
                self.scope.check()
                work(job)
                self._unreachable = 0
            except GahpError as error:
                trouble = self._of_all(error)
                if trouble is None:
                    self.errors[job.called] = _bare(error)
            except BaseException as error:  # noqa: BLE001  (raised below)
                trouble = error
            if trouble is not None:
                # Noted now, because other threads may wait for the network for long.
                self._fatal = self._fatal or trouble
                raise trouble
            self._count(jobs=1)

        self._report()
        try:
            try:
                start(run, "fetch")
            except RuntimeError:  # a limit on threads
                run()
            while not ended.wait(_PAUSE):
                self._report()
                self.scope.check()
        except Stopped as error:
            self._fatal = self._fatal or error
        finally:
            # Ctrl-C ends up here, too.
            if not ended.is_set():
                self.scope.close()
                with suppress(KeyboardInterrupt):
                    ended.wait(_LEAVING)
        fatal = self._fatal
        self.stopped = isinstance(fatal, Stopped) and self._stop.is_set()
        if fatal is not None and not self.stopped:
            raise fatal
        self._report()

    def _count(self, *, jobs: int = 0, nbytes: int = 0) -> None:
        """Count in any thread; only the one that fetches reports."""
        with self._counting:
            self._now = self._now[0] + jobs, self._now[1] + nbytes

    def _report(self) -> None:
        """Report the progress, if it has changed."""
        now = self._now
        if self._progress is not None and now != self._reported:
            self._reported = now
            self._progress(Progress("fetching", now[0], len(self._jobs), "jobs"))
            self._progress(Progress("fetching", now[1], now[1], "bytes"))

    def folder(
        self,
        path: Path,
        job: FinishedJob,
        *,
        stderr: bool,
        again: bool,
        streams_only: bool = False,
    ) -> Folder:
        """Return the folder for a job; of a program, perhaps only for its streams.

        The machine that submitted the batch has the jobs' own templates in its manifest. A project
        does not tell them (``web-rpcs.rst``, "Queries"); but programs' own files tell what they
        are.

        Raises:
            RpcError: the project could not be asked what the job is.
            TemplateError: its template cannot be read.
        """
        template, is_program, outputs = None, False, None
        # A retry has the templates of the job that it repeats.
        if self._manifest is not None and job.called in self._manifest.jobs:
            sent = self._manifest.job(job.called)
            if sent.output_template is not None:
                template = own_template(sent.output_template)
                is_program = any(file.open_name == ENDING for file in template.files)
            if sent.program is not None:
                outputs = json.loads(sent.program.shared)["outputs"]
        elif self._all_are_programs():
            template, is_program = unknown_template(), True
        if not is_program:
            made = Folder(path, job, stderr=stderr, again=again)
        else:
            # Those that the program has to make, as far as that is known.
            named = () if streams_only else None if outputs is None else tuple(outputs)
            made = ProgramFolder(
                path, job, stderr=stderr, again=again, named=named, streams_only=streams_only
            )
        made.own_template = template
        return made

    def _all_are_programs(self) -> bool:
        """Tell whether the batch's app is for programs: it has no templates, and needs none."""
        with self._asking:
            if self._programs is None:
                app = self._batch.app_name
                is_theirs = app == self._session.project_settings.container_app
                try:
                    if not is_theirs:
                        self._session.rpc.get_templates(app_name=app)
                except TemplatesMissing:
                    is_theirs = True
                self._programs = is_theirs
            return self._programs

    def bring(
        self, folder: Folder, directories: Directories, have: Mapping[Path, int]
    ) -> FetchedFiles:
        """Fetch a job's files into its folder with the engine; raises what the engine raises."""
        job = JobInfo(folder.job.id, folder.job_name, folder.job.instance_id)
        from boinc_gahp.fetch.engine import fetch  # noqa: PLC0415  (heavy)

        brought = fetch(
            self._session.context,
            Located(folder.job.batch_id or self._batch.id, self._batch.app_name, job),
            folder,
            self.scope,
            own_template=folder.own_template,
            directories=directories,
            again=folder.again,
            have=have,
            count=lambda nbytes: self._count(nbytes=nbytes),
        )
        if folder.is_program and folder.wants_stderr:
            # The engine needs it for a stderr only; it has the times, too.
            self.scope.check()
            completed = self._session.rpc.query_completed_job(folder.job_name)
            brought = replace(brought, completed=completed)
        return brought

    def _of_all(self, error: GahpError) -> GahpError | None:
        """Return the error if every other job would fail with it; None: only this job fails."""
        from boinc_gahp.templates.types import TemplateError  # noqa: PLC0415  (already imported when outputs are fetched)

        if isinstance(error, (Stopped, TemplateError)):
            return error
        if isinstance(error, OutputError) and (error.passes or errno_of(error) in _NO_WRITING):
            return error
        if isinstance(error, RpcError):
            try:
                check_answers(self._session, error)
            except RpcError as trouble:
                return trouble
        # One that does not pass is about this job's files, since the project answers.
        if isinstance(error, (TransportError, ProtocolError)) and error.passes:
            self._unreachable += 1
            if self._unreachable >= _MAX_UNREACHABLE:
                return error
        return None


def fetch_streams(batch: KnownBatch, job: JobInfo, path: Path) -> FetchRecord | None:
    """Fetch only what a program wrote to its standard streams; return the note about it.

    Args:
        batch: the job's batch.
        job: a job that is done.
        path: a folder for them, in a directory that exists.

    Returns:
        None if the job did not run a program.

    Raises:
        OutputError, RpcError: as :meth:`BatchFetch.bring`.
    """
    done = finished(job)
    under_way = BatchFetch(batch, [done], progress=None)
    folder = under_way.folder(path, done, stderr=True, again=False, streams_only=True)
    if not folder.is_program:
        return None
    folder.fill(batch.session.rpc.url, under_way.bring, under_way.scope, path.parent.stat())
    return folder.note


def learn_endings(
    batch: KnownBatch,
    which: Iterable[int | str] | None = None,
    *,
    progress: OnProgress | None = None,
) -> int:
    """Ask how the programs of a batch ended that were not fetched; return how many ended badly.

    It takes a request for each job. That a program did not make an output is only noticed when
    the batch is fetched.

    Args:
        batch: the batch.
        which: names or ids of jobs; None: all.
        progress: called with the number of jobs that were asked about.

    Raises:
        NoSuchJob: the batch has no such job.
        OutputError, RpcError, TemplateError: one of them is not known; what was told is kept.
    """
    if not ran_programs(batch):
        return 0
    listed = list(finding.find_jobs(batch, which))
    root, known = batch.directory, batch.endings
    jobs = [
        finished(job)
        for job in listed
        if job.state is JobState.DONE
        and job.id not in known
        and program_note(batch, job, root) is None
    ]
    under_way = BatchFetch(batch, jobs, progress=progress)

    def ask(job: FinishedJob) -> None:
        place = under_way.folder(Path(job.name), job, stderr=False, again=False, streams_only=True)
        with Directories(under_way.scope) as directories:
            under_way.bring(place, directories, {})  # no file: only the ending is read
        note = FetchRecord(batch.session.rpc.url, job.id, job.instance_id, {}, None)
        known[job.id] = place.told(note)

    under_way.each(ask, _THREADS)
    for error in under_way.errors.values():
        raise error
    return len(failed_programs(batch, listed))


def _bare(error: GahpError) -> GahpError:
    """Return the error without its traceback, which keeps the frames of all calls in memory."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error
