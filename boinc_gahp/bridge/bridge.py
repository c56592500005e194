"""The bridge of one project and one account: each BOINC_* request as one method."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from boinc_gahp.bridge import control, fetch, query, submit
from boinc_gahp.bridge.context import Context
from boinc_gahp.bridge.delivered import Delivered
from boinc_gahp.bridge.digests import Digests
from boinc_gahp.bridge.known import Known
from boinc_gahp.bridge.types import Client
from boinc_gahp.config import ProjectSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from boinc_gahp.bridge.types import BatchStatuses, FetchRequest, FetchResult, SubmitRequest
    from boinc_gahp.config import Settings
    from boinc_gahp.ledger import Ledger
    from boinc_gahp.rpc import Batch, Project

_A_PERSON = Client()


class Bridge:
    """What the BOINC_* commands do on a project; thread-safe.

    Every method raises errors of :mod:`boinc_gahp.errors` only.

    Args:
        project: the project with an account's authenticator; closed by :meth:`close`.
        settings: all settings.
        ledger: None where none can be kept: nothing is then remembered beyond this process.
        cache_dir: the user's cache directory, or None to do without.
        project_settings: the project's own settings; None: the defaults.
    """

    def __init__(
        self,
        project: Project,
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

    def submit(self, request: SubmitRequest, client: Client = _A_PERSON) -> None:
        """See :func:`boinc_gahp.bridge.submit.submit`."""
        self._context.known.mention([request.batch_name])
        submit.submit(self._context, request, client)

    def query_batches(
        self, names: Sequence[str], min_mod_time: str | float, client: Client = _A_PERSON
    ) -> BatchStatuses:
        """See :func:`boinc_gahp.bridge.query.query_batches`."""
        self._context.known.mention(names)
        return query.query_batches(self._context, names, min_mod_time, client)

    def fetch_output(self, request: FetchRequest) -> FetchResult:
        """See :func:`boinc_gahp.bridge.fetch.fetch_output`."""
        return fetch.fetch_output(self._context, request)

    def abort_jobs(self, names: Sequence[str], *, remember: bool = True) -> None:
        """See :func:`boinc_gahp.bridge.control.abort_jobs`."""
        control.abort_jobs(self._context, names, remember=remember)

    def retire_batch(self, name: str) -> None:
        """See :func:`boinc_gahp.bridge.control.retire_batch`."""
        control.retire_batch(self._context, name)

    def set_lease(self, name: str, unix_time: float) -> None:
        """See :func:`boinc_gahp.bridge.control.set_lease`."""
        control.set_lease(self._context, name, unix_time)

    def batches(self) -> tuple[Batch, ...]:
        """Return the account's batches, retired ones excepted, as the project lists them now."""
        return self._context.known.batches()

    def job_names(self, batch_id: int) -> tuple[str, ...]:
        """Return the names of a batch's jobs, from memory where they are known for good."""
        return tuple(self._context.known.view(batch_id, lambda view: view.final).jobs)

    def settle(self) -> None:
        """See :func:`boinc_gahp.bridge.control.settle`; one thread at a time."""
        if self._settling.acquire(blocking=False):
            try:
                control.settle(self._context)
            finally:
                self._settling.release()

    def close(self) -> None:
        """Close the connections to the project; the ledger stays open."""
        self._context.delivered.close()
        self._context.project.close()
