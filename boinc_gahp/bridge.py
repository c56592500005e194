"""The bridge of one project and one account: each BOINC_* request as one method."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

# Each function is imported when it is first called: a daemon that only pings needs few of them.
from boinc_gahp import fetch, submit
from boinc_gahp.config import ProjectSettings, authenticator_of, cache_dir, ledger_file, state_dir
from boinc_gahp.fetch import NEVER_CANCELLED
from boinc_gahp.ledger import Ledger
from boinc_gahp.rpc import ClientOptions, WebRpcs
from boinc_gahp.submit import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from boinc_gahp.config import Settings
    from boinc_gahp.errors import ProjectError
    from boinc_gahp.fetch import (
        CancelScope,
        ContainerRequest,
        Directories,
        Failure,
        FetchedFiles,
        FetchRequest,
        FetchResult,
        Located,
        Sink,
    )
    from boinc_gahp.ledger import BatchRow, JobLedger
    from boinc_gahp.rpc import BatchInfo, JobInfo
    from boinc_gahp.submit import (
        BatchJobs,
        BatchStatuses,
        ContainerJob,
        Job,
        Journal,
        OnProgress,
        SubmitRequest,
        Validation,
    )

_A_PERSON = Client()


class Bridge:
    """The work of the BOINC_* commands on a project; thread-safe.

    All methods only raise errors of :mod:`boinc_gahp.errors`.

    Args:
        project: the project with an account's authenticator; :meth:`close` closes it.
        settings: all settings.
        ledger: the ledger; None if there is none: then nothing outlives this process.
        cache_dir: the user's cache directory, or None to do without.
        project_settings: the project's own settings; None: the defaults.
    """

    def __init__(
        self,
        project: WebRpcs,
        settings: Settings,
        ledger: Ledger | None,
        cache_dir: Path | None,
        project_settings: ProjectSettings | None = None,
    ) -> None:
        self._context = fetch.FetchContext(
            project=project,
            settings=settings,
            project_settings=project_settings or ProjectSettings(project.url),
            ledger=ledger,
            cache=submit.ProjectCache(project, settings.jobs.templates_cached),
            cache_dir=cache_dir,
            digests=submit.Digests(cache_dir if settings.staging.md5_cache else None),
            delivered=fetch.Delivered(cache_dir),
        )
        #: One for all threads, so that they make an archive that they share once.
        self._made = submit.MadeFiles.of(state_dir(settings))
        self._reconciling = threading.Lock()

    def ping(self) -> None:
        """Ask whether the project answers."""
        self._context.project.ping()

    def submit(self, request: SubmitRequest, journal: Journal | None = None) -> int:
        """See :func:`boinc_gahp.submit.engine.submit`; None writes nothing down."""
        return submit.submit(self._context, request, journal or submit.Journal())

    def boinc_submit(self, request: SubmitRequest, answer_by: float | None) -> int:
        """Submit the batch of a BOINC_SUBMIT.

        Args:
            request: the batch.
            answer_by: ``time.monotonic()`` at which a gridmanager needs the result: if the submit
                fails, none of the batch's jobs exists or appears. Its lease is ``[jobs] lease``,
                because a gridmanager renews it. None: a person typed the request.

        Raises:
            JobRefused: the jobs are for a BUDA app: a BOINC_SUBMIT cannot name their outputs.
            LedgerError: for a gridmanager, the submission could not be written into the ledger
                first.
        """
        request = submit.buda_request(request)
        self._context.cache.mention([request.batch_name])
        if answer_by is None:
            return self.submit(request, submit.ConsoleJournal(self._context, request))
        lease = self._context.settings.jobs.lease
        request = replace(request, lease=lease, answer_by=answer_by, name_is_given=True)
        return self.submit(request, submit.GridmanagerJournal(self._context, request))

    def jobs_there(self, request: SubmitRequest) -> tuple[int | None, int]:
        """Return the project's id of the batch of this name, and how many of the jobs it has.

        None and 0 if there is none; nothing is changed.

        Raises:
            BatchConflict: a submit would be refused.
            RpcError: the project could not be reached.
        """
        details = submit.look_up(self._context.project, request)
        if details is None:
            return None, 0
        left = submit.missing(self._context.project, request, details)
        return details.batch.id, len(request.jobs) - len(left)

    @property
    def max_post_bytes(self) -> int:
        """The largest request, in bytes, that the project's settings allow."""
        return self._context.project_settings.max_post_bytes

    def container_jobs(
        self,
        jobs: Sequence[tuple[str, ContainerJob]],
        keep_going: Callable[[], None] = lambda: None,
    ) -> list[tuple[str, Job]]:
        """See :func:`boinc_gahp.submit.container_jobs.make_container_jobs`."""
        return submit.make_container_jobs(
            jobs,
            self._made,
            lambda path: self._context.digests.of([path])[path].md5,
            keep_going,
        )

    def clean_made(self, older_than: float) -> None:
        """Remove files that :meth:`container_jobs` made and nobody used for so many seconds."""
        self._made.clean(older_than)

    def is_made(self, path: str) -> bool:
        """Return whether a file is one that :meth:`container_jobs` makes."""
        return self._made.is_made(path)

    def request_size(self, request: SubmitRequest) -> int:
        """See :meth:`boinc_gahp.submit.validate.BatchValidator.size`."""
        return submit.BatchValidator(self._context, request).size()

    def validate(self, request: SubmitRequest) -> Validation:
        """See :meth:`boinc_gahp.submit.validate.BatchValidator.validation`."""
        return submit.BatchValidator(self._context, request).validation()

    def estimate(self, request: SubmitRequest) -> float:
        """See :meth:`boinc_gahp.submit.validate.BatchValidator.estimate`."""
        return submit.BatchValidator(self._context, request).estimate()

    def physical_names(
        self, paths: Iterable[str], progress: OnProgress | None = None
    ) -> dict[str, str]:
        """Return the names that local files have on projects; reads files that are not cached.

        Raises:
            StagingError: a file cannot be read, or changed meanwhile.
            Exception: what ``progress`` raises.
        """
        try:
            files = self._context.digests.of(paths, meter=submit.Meter(progress))
        except submit.Interrupted as interrupted:
            raise interrupted.error from None
        physical = submit.PhysicalNames(files)
        return {path: physical.name_of(path) for path in files}

    def absent(self, physical_names: Iterable[str]) -> set[str]:
        """Return those of the names that the project has no file for; nothing is changed there.

        Raises:
            RpcError: the project could not be reached, or does not accept one as a file name.
        """
        names = list(dict.fromkeys(physical_names))
        return set(submit.Association(self._context.project, 0, 1).absent(names))

    def abort_empty(self, name: str) -> bool:
        """See :func:`boinc_gahp.submit.abort.abort_empty`."""
        return submit.abort_empty(self._context, name)

    def drop(self, batch_id: int, name: str) -> None:
        """See :func:`boinc_gahp.submit.abort.drop`."""
        submit.drop(self._context, batch_id, name)

    def check_names(self, request: SubmitRequest) -> None:
        """See :func:`boinc_gahp.submit.names_in_use.check_names`."""
        submit.check_names(self._context.project, request)

    def abort_once(self, batch_id: int, name: str) -> bool:
        """See :func:`boinc_gahp.submit.abort.abort_once`."""
        return submit.abort_once(self._context, batch_id, name)

    def abort_until_certain(
        self, batch: BatchRow, jobs: JobLedger, *, njobs: int, is_clear: bool
    ) -> bool:
        """See :func:`boinc_gahp.submit.abort.abort_until_certain`."""
        return submit.abort_until_certain(
            self._context, batch, jobs, njobs=njobs, is_clear=is_clear
        )

    def query_batches(
        self, names: Sequence[str], min_mod_time: str | float, client: Client = _A_PERSON
    ) -> BatchStatuses:
        """See :func:`boinc_gahp.submit.query.query_batches`."""
        self._context.cache.mention(names)
        return submit.query_batches(self._context, names, min_mod_time, client)

    def fetch_output(
        self, request: FetchRequest, scope: CancelScope = NEVER_CANCELLED
    ) -> FetchResult:
        """See :func:`boinc_gahp.fetch.job_directory.fetch_output`."""
        return fetch.fetch_output(self._context, request, scope)

    def fetch_container(
        self, request: ContainerRequest, scope: CancelScope = NEVER_CANCELLED
    ) -> FetchResult:
        """See :func:`boinc_gahp.fetch.container_directory.fetch_container`."""
        return fetch.fetch_container(self._context, request, scope)

    def write_failure(
        self,
        request: FetchRequest | ContainerRequest,
        text: str,
        scope: CancelScope = NEVER_CANCELLED,
    ) -> None:
        """See :func:`boinc_gahp.fetch.job_directory.write_failure`."""
        fetch.write_failure(request, text, scope)

    def fetch(
        self,
        located: Located,
        sink: Sink,
        scope: CancelScope,
        count: Callable[[int], object],
        directories: Directories | None = None,
        *,
        own_template: str | None = None,
    ) -> FetchedFiles:
        """See :func:`boinc_gahp.fetch.engine.fetch`."""
        return fetch.fetch(
            self._context,
            located,
            sink,
            scope,
            own_template=own_template,
            count=count,
            directories=directories,
        )

    def failure_of(self, job: JobInfo) -> Failure:
        """See :func:`boinc_gahp.fetch.failures.failure_of`."""
        return fetch.failure_of(self._context, job)

    def failure(self, job_name: str, batch_id: int) -> Failure | None:
        """See :func:`boinc_gahp.fetch.failures.failure`."""
        return fetch.failure(self._context, job_name, batch_id)

    def query_jobs(self, batch_id: int) -> BatchJobs:
        """See :func:`boinc_gahp.submit.query.query_jobs`."""
        return submit.query_jobs(self._context, batch_id)

    def abort_jobs(self, names: Sequence[str], *, remember: bool = True) -> None:
        """See :func:`boinc_gahp.submit.control.abort_jobs`."""
        submit.abort_jobs(self._context, names, remember=remember)

    def abort_each(self, names: Sequence[str]) -> dict[str, ProjectError]:
        """See :func:`boinc_gahp.submit.control.abort_each`."""
        return submit.abort_each(self._context, names)

    def retire_batch(self, name: str) -> None:
        """See :func:`boinc_gahp.submit.control.retire_batch`."""
        submit.retire_batch(self._context, name)

    def set_lease(self, name: str, unix_time: float) -> None:
        """See :func:`boinc_gahp.submit.control.set_lease`."""
        submit.set_lease(self._context, name, unix_time)

    def batches(self) -> tuple[BatchInfo, ...]:
        """Return the account's batches, without retired ones, as the project lists them now."""
        return self._context.cache.batches()

    def job_names(self, batch_id: int) -> tuple[str, ...]:
        """Return the names of a batch's jobs, from memory if they cannot change any more."""
        return tuple(self._context.cache.view(batch_id, lambda view: view.final).jobs)

    def reconcile(self, *, alone: bool = False) -> None:
        """See :func:`boinc_gahp.submit.control.reconcile`; one thread at a time."""
        if self._reconciling.acquire(blocking=False):
            try:
                submit.reconcile(self._context, alone=alone)
            finally:
                self._reconciling.release()

    def close(self) -> None:
        """Close the connections to the project; the ledger stays open."""
        self._context.delivered.close()
        self._context.project.close()


class Opener:
    """Makes the bridges of one process; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None

    def open(self, settings: Settings, project: ProjectSettings) -> Bridge:
        """Return a new bridge to ``project``.

        Raises:
            ConfigError: it has no authenticator.
            LedgerError: the ledger cannot be used where it is; says which setting to change.
        """
        authenticator = authenticator_of(settings, project)
        options = ClientOptions.of(settings, project)
        ledger = self.ledger(settings)
        return Bridge(
            WebRpcs(project.url, authenticator, options=options),
            settings,
            ledger,
            cache_dir(settings),
            project,
        )

    @staticmethod
    def are_alike(
        one: tuple[Settings, ProjectSettings], other: tuple[Settings, ProjectSettings]
    ) -> bool:
        """Tell whether a bridge that was opened with ``one`` can be used for ``other``.

        This is only decided here: a bridge and its connections keep the settings that they were
        made with.
        """
        return _used(*one) == _used(*other)

    def ledger(self, settings: Settings) -> Ledger:
        """Return this process's ledger, opened at the first call; raises LedgerError."""
        with self._lock:
            if self._ledger is None:
                self._ledger = Ledger(ledger_file(settings))
            return self._ledger

    @property
    def opened(self) -> Ledger | None:
        """The ledger, if it was opened."""
        return self._ledger

    def close(self) -> None:
        """Close the ledger, for programs that make several of these in one process."""
        with self._lock:
            if self._ledger is not None:
                self._ledger.close()


def _used(settings: Settings, project: ProjectSettings) -> tuple[object, ...]:
    """Return the settings that a bridge and its connections use."""
    options = ClientOptions.of(settings, project)
    return options, project, settings.timeouts, settings.staging, settings.jobs
