"""The bridge of one project and one account: each BOINC_* request as one method."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.bridge import aborting, control, failed, looking, query, submit
from boinc_gahp.bridge.association import Association
from boinc_gahp.bridge.boinc_submit import GridmanagerJournal, PersonsJournal
from boinc_gahp.bridge.context import Context
from boinc_gahp.bridge.digests import Digests
from boinc_gahp.bridge.fetching import engine, fetch_output
from boinc_gahp.bridge.fetching.delivered import Delivered
from boinc_gahp.bridge.gate import OPEN
from boinc_gahp.bridge.journal import Journal
from boinc_gahp.bridge.judging import Judged
from boinc_gahp.bridge.known import Known
from boinc_gahp.bridge.meter import Interrupted, Meter
from boinc_gahp.bridge.staging import Physical
from boinc_gahp.bridge.types import Client
from boinc_gahp.config import ProjectSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from boinc_gahp.bridge.fetching.engine import Brought
    from boinc_gahp.bridge.fetching.locate import Located
    from boinc_gahp.bridge.fetching.sinks import Sink
    from boinc_gahp.bridge.gate import Gate
    from boinc_gahp.bridge.types import (
        BatchLook,
        BatchStatuses,
        Failure,
        FetchRequest,
        FetchResult,
        Judgement,
        OnProgress,
        SubmitRequest,
    )
    from boinc_gahp.config import Settings
    from boinc_gahp.errors import ProjectError
    from boinc_gahp.ledger import BatchRow, JobLedger, Ledger
    from boinc_gahp.rpc import BatchInfo, JobInfo, WebRpcs

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
        self._context = Context(
            project=project,
            settings=settings,
            project_settings=project_settings or ProjectSettings(project.url),
            ledger=ledger,
            known=Known(project, settings.jobs.templates_cached),
            cache_dir=cache_dir,
            digests=Digests(cache_dir if settings.staging.md5_cache else None),
            delivered=Delivered(cache_dir),
        )
        self._settling = threading.Lock()

    def ping(self) -> None:
        """Ask whether the project answers."""
        self._context.project.ping()

    def submit(self, request: SubmitRequest, journal: Journal | None = None) -> int:
        """See :func:`boinc_gahp.bridge.submit.submit`; None writes nothing down."""
        return submit.submit(self._context, request, journal or Journal())

    def boinc_submit(self, request: SubmitRequest, answer_by: float | None) -> int:
        """Submit the batch of a BOINC_SUBMIT.

        Args:
            request: the batch.
            answer_by: ``time.monotonic()`` at which a gridmanager needs the result: if the submit
                fails, none of the batch's jobs exists or appears. Its lease is ``[jobs] lease``,
                because a gridmanager renews it. None: a person typed the request.

        Raises:
            LedgerError: for a gridmanager, the debt could not be written into the ledger first.
        """
        self._context.known.mention([request.batch_name])
        if answer_by is None:
            return self.submit(request, PersonsJournal(self._context, request))
        lease = self._context.settings.jobs.lease
        request = replace(request, lease=lease, answer_by=answer_by, name_is_given=True)
        return self.submit(request, GridmanagerJournal(self._context, request))

    def jobs_there(self, request: SubmitRequest) -> tuple[int | None, int]:
        """Return the project's id of the batch of this name, and how many of the jobs it has.

        None and 0 if there is none; nothing is changed.

        Raises:
            BatchConflict: a submit would be refused.
            RpcError: the project could not be reached.
        """
        details = looking.look_up(self._context.project, request)
        if details is None:
            return None, 0
        left = looking.missing(self._context.project, request, details)
        return details.batch.id, len(request.jobs) - len(left)

    @property
    def max_post_bytes(self) -> int:
        """The largest request, in bytes, that the project's settings allow."""
        return self._context.project_settings.max_post_bytes

    def request_size(self, request: SubmitRequest) -> int:
        """See :meth:`boinc_gahp.bridge.judging.Judged.size`."""
        return Judged(self._context, request).size()

    def judge(self, request: SubmitRequest) -> Judgement:
        """See :meth:`boinc_gahp.bridge.judging.Judged.judgement`."""
        return Judged(self._context, request).judgement()

    def estimate(self, request: SubmitRequest) -> float:
        """See :meth:`boinc_gahp.bridge.judging.Judged.estimate`."""
        return Judged(self._context, request).estimate()

    def physical_names(
        self, paths: Iterable[str], progress: OnProgress | None = None
    ) -> dict[str, str]:
        """Return the names that local files have on projects; reads files that are not cached.

        Raises:
            StagingError: a file cannot be read, or changed meanwhile.
            Exception: what ``progress`` raises.
        """
        try:
            files = self._context.digests.of(paths, meter=Meter(progress))
        except Interrupted as interrupted:
            raise interrupted.error from None
        physical = Physical(files)
        return {path: physical.name_of(path) for path in files}

    def absent(self, physical_names: Iterable[str]) -> set[str]:
        """Return those of the names that the project has no file for; nothing is changed there.

        Raises:
            RpcError: the project could not be reached, or does not accept one as a file name.
        """
        names = list(dict.fromkeys(physical_names))
        return set(Association(self._context.project, 0, 1).absent(names))

    def withdraw_empty(self, name: str) -> bool:
        """See :func:`boinc_gahp.bridge.aborting.withdraw_empty`."""
        return aborting.withdraw_empty(self._context, name)

    def abort_once(self, batch_id: int, name: str) -> bool:
        """See :func:`boinc_gahp.bridge.aborting.abort_once`."""
        return aborting.abort_once(self._context, batch_id, name)

    def abort_until_certain(
        self, batch: BatchRow, jobs: JobLedger, *, njobs: int, is_clear: bool
    ) -> bool:
        """See :func:`boinc_gahp.bridge.aborting.abort_until_certain`."""
        return aborting.abort_until_certain(
            self._context, batch, jobs, njobs=njobs, is_clear=is_clear
        )

    def query_batches(
        self, names: Sequence[str], min_mod_time: str | float, client: Client = _A_PERSON
    ) -> BatchStatuses:
        """See :func:`boinc_gahp.bridge.query.query_batches`."""
        self._context.known.mention(names)
        return query.query_batches(self._context, names, min_mod_time, client)

    def fetch_output(self, request: FetchRequest, gate: Gate = OPEN) -> FetchResult:
        """See :func:`boinc_gahp.bridge.fetching.fetch_output.fetch_output`."""
        return fetch_output.fetch_output(self._context, request, gate)

    def write_failure(self, request: FetchRequest, text: str, gate: Gate = OPEN) -> None:
        """See :func:`boinc_gahp.bridge.fetching.fetch_output.write_failure`."""
        fetch_output.write_failure(request, text, gate)

    def fetch(
        self, located: Located, sink: Sink, gate: Gate, count: Callable[[int], object]
    ) -> Brought:
        """See :func:`boinc_gahp.bridge.fetching.engine.fetch`."""
        return engine.fetch(self._context, located, sink, gate, count=count)

    def failure_of(self, job: JobInfo) -> Failure:
        """See :func:`boinc_gahp.bridge.failed.failure_of`."""
        return failed.failure_of(self._context, job)

    def failure(self, job_name: str, batch_id: int) -> Failure | None:
        """See :func:`boinc_gahp.bridge.failed.failure`."""
        return failed.failure(self._context, job_name, batch_id)

    def look_at(self, batch_id: int) -> BatchLook:
        """See :func:`boinc_gahp.bridge.looking.look_at`."""
        return looking.look_at(self._context, batch_id)

    def abort_jobs(self, names: Sequence[str], *, remember: bool = True) -> None:
        """See :func:`boinc_gahp.bridge.control.abort_jobs`."""
        control.abort_jobs(self._context, names, remember=remember)

    def abort_each(self, names: Sequence[str]) -> dict[str, ProjectError]:
        """See :func:`boinc_gahp.bridge.control.abort_each`."""
        return control.abort_each(self._context, names)

    def retire_batch(self, name: str) -> None:
        """See :func:`boinc_gahp.bridge.control.retire_batch`."""
        control.retire_batch(self._context, name)

    def set_lease(self, name: str, unix_time: float) -> None:
        """See :func:`boinc_gahp.bridge.control.set_lease`."""
        control.set_lease(self._context, name, unix_time)

    def batches(self) -> tuple[BatchInfo, ...]:
        """Return the account's batches, without retired ones, as the project lists them now."""
        return self._context.known.batches()

    def job_names(self, batch_id: int) -> tuple[str, ...]:
        """Return the names of a batch's jobs, from memory if they cannot change any more."""
        return tuple(self._context.known.view(batch_id, lambda view: view.final).jobs)

    def settle(self, *, alone: bool = False) -> None:
        """See :func:`boinc_gahp.bridge.control.settle`; one thread at a time."""
        if self._settling.acquire(blocking=False):
            try:
                control.settle(self._context, alone=alone)
            finally:
                self._settling.release()

    def close(self) -> None:
        """Close the connections to the project; the ledger stays open."""
        self._context.delivered.close()
        self._context.project.close()
