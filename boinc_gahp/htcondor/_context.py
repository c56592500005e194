"""What the parts of a manager share, and the scopes that protect a cancelled job's directory.

A scope is closed before BLAH_JOB_CANCEL is answered (:class:`boinc_gahp.fetch.cancel.CancelScope`).
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from boinc_gahp.fetch.cancel import CancelScope
from boinc_gahp.htcondor._pauses import Pauses
from boinc_gahp.htcondor._retry_times import longest_pause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boinc_gahp.config.settings import HTCondor, Settings
    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.ledger.jobs import JobLedger

#: Seconds that a cancel waits for a fetch to remove its temporary files. That is all that the fetch
#: can still do: it writes no content once the scope is closed.
CLEARING = 10.0


class JobCancelled(Exception):
    """HTCondor has cancelled the job in the meantime: leave its directory as it is."""


class CancelScopes:
    """The cancel scopes of this process, by job; thread-safe.

    A fetch opens its scope first, and only then asks the ledger whether the job is still wanted
    (:meth:`JobLedger.writing`): so a later cancel finds the scope.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._scopes: dict[int, CancelScope] = {}
        self._troubles: dict[int, str] = {}

    @contextmanager
    def open(self, job_id: int) -> Iterator[CancelScope]:
        """Yield a scope for the job while the block runs; only one fetch of a job at a time."""
        scope = CancelScope(error=JobCancelled)
        with self._changed:
            self._scopes[job_id] = scope
        try:
            yield scope
        finally:
            with self._changed:
                del self._scopes[job_id]
                self._changed.notify_all()

    def blocked(self, job_id: int, trouble: str | None) -> None:
        """Note why this submit node cannot store the job's outputs now; None: it can."""
        with self._changed:
            if trouble is None:
                self._troubles.pop(job_id, None)
            else:
                self._troubles[job_id] = trouble

    def trouble(self, job_id: int) -> str | None:
        """Return why this submit node cannot store the job's outputs now; None if it can."""
        with self._changed:
            return self._troubles.get(job_id)

    def jobs(self) -> tuple[int, ...]:
        """Return the jobs that have a scope now."""
        with self._changed:
            return tuple(self._scopes)

    def close(self, job_id: int, clearing: float = CLEARING) -> None:
        """Close the job's scope, if it has one.

        Returns when nothing is written any more, and waits up to ``clearing`` seconds for the fetch
        to end.
        """
        with self._changed:
            self._troubles.pop(job_id, None)
            scope = self._scopes.get(job_id)
        if scope is None:
            return
        scope.close()
        with self._changed:
            self._changed.wait_for(lambda: self._scopes.get(job_id) is not scope, clearing)


class AccountContext:
    """What a manager gives to its parts; thread-safe.

    Settings and project are the current ones: long work keeps what it was begun with, and later
    work uses the new ones.

    Args:
        project: the project; its settings can be changed.
        jobs: the ledger of jobs.
        url: the project's address, as the ledger has it.
        account: the account on it (:attr:`Authenticator.account`).
        settings: all settings.
        wake: makes the manager look for work at once.
        stopping: set when the process is about to end: begin nothing long.
        scopes: the cancel scopes of this process.

    Attributes:
        pauses: what has to wait, and until when.
    """

    def __init__(
        self,
        *,
        project: FetchContext,
        jobs: JobLedger,
        url: str,
        account: str,
        settings: Settings,
        wake: Callable[[], None],
        stopping: threading.Event,
        scopes: CancelScopes,
    ) -> None:
        self._now = (settings, project)
        self.jobs = jobs
        self.url = url
        self.account = account
        self.wake = wake
        self.stopping = stopping
        self.scopes = scopes
        self.pauses = Pauses(
            ping=self._ping,
            record_trouble=self._record_trouble,
            pauses=self._pauses,
            longest=lambda: self.longest_pause,
            wake=wake,
            url=url,
        )

    @property
    def settings(self) -> Settings:
        """All settings, as they are now."""
        return self._now[0]

    @property
    def htcondor(self) -> HTCondor:
        """The section ``[htcondor]``, as it is now."""
        return self._now[0].htcondor

    @property
    def longest_pause(self) -> float:
        """The longest pause between attempts, in seconds."""
        return longest_pause(self.htcondor)

    @property
    def project(self) -> FetchContext:
        """The project, for work that is begun now."""
        return self._now[1]

    def change(self, settings: Settings, project: FetchContext) -> None:
        """Use these for all work that is begun from now on."""
        self._now = (settings, project)

    def _ping(self) -> None:
        self.project.project.ping()

    def _record_trouble(self, trouble: str | None) -> None:
        if not self.stopping.is_set():  # work under way fails because connections are closed
            self.jobs.project_trouble(self.url, self.account, trouble)

    def _pauses(self) -> tuple[float, float]:
        return self.htcondor.poll_shortest, self.htcondor.poll_longest
