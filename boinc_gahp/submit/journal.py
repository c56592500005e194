"""What a submit and its submitter tell each other while it runs.

The submitter writes down how far its batch is, because it is responsible later, and says which jobs
it still wants; it is told the progress.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from boinc_gahp.states import BatchState
from boinc_gahp.submit.types import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from boinc_gahp.rpc.types import BatchDetails, BatchInfo, UploadFile
    from boinc_gahp.submit.types import OnProgress, Step, SubmitRequest

#: Seconds reserved for undoing a submission before its answer is due.
UNDO_TIME = 10.0
#: Seconds for which an answer about wanted jobs is used in the middle of a file.
_LASTS = 0.5
#: Seconds between two reports of progress, except a step's first and last.
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class SubmitState:
    """How far the submission of a batch is.

    Attributes:
        batch_id: the project's id of the batch; None: it is not known to be there.
        ours: whether the project has only the request's jobs in it.
        sent: whether jobs of it may be on the project.
        unclear: whether a submit_batch of it may still be running on the project.
        made: whether this submit has created it.
        batch: the batch as the project last showed it; None: it did not.
    """

    batch_id: int | None = None
    ours: bool = True
    sent: bool = False
    unclear: bool = False
    made: bool = False
    batch: BatchInfo | None = None

    def seen(self, details: BatchDetails, request: SubmitRequest) -> SubmitState:
        """Return this, updated with the project's answer for the request's name."""
        if details.batch.name != request.batch_name:
            return self  # the project ignores case, accents and trailing spaces
        names = {job.name for job in details.jobs}
        # A retired batch has no running jobs; an abort would make it active again.
        has_jobs = bool(names) and details.batch.state is not BatchState.RETIRED
        return replace(
            self,
            batch_id=details.batch.id,
            ours=names <= {name for name, _ in request.jobs},
            sent=self.sent or has_jobs,
            batch=details.batch,
        )


class Journal:
    """:func:`boinc_gahp.submit.engine.submit` tells it how far it is; this class keeps nothing.

    An exception from a method ends the submit; :meth:`failed` raises nothing.
    """

    def begin(self) -> SubmitState:
        """Return how far the batch was by the last note about it."""
        return SubmitState()

    def wanted(self) -> Iterable[str] | None:
        """Return the names of the jobs that are still wanted; None: all are.

        Called while files are read and sent, so that files of jobs that are no longer wanted are
        not sent.
        """
        return None

    def files_read(self, md5s: Mapping[str, str]) -> None:
        """Take the MD5s, in hex and by path, of the local files of the jobs to send."""

    def files_published(self, files: Sequence[UploadFile]) -> None:
        """Take the files that volunteers fetch from a web server of ours, where they are now."""

    def about_to_send(self, batch_id: int) -> None:
        """Write down that a submit_batch is about to be sent; if this raises, it is not.

        Args:
            batch_id: the project's id of the batch.
        """

    def done(self, batch_id: int, sending: SubmitState) -> None:
        """Write down that all jobs of the batch, by the project's id, are there."""

    def failed(self, sending: SubmitState, error: BaseException) -> None:
        """Clean up after a submit that ends in an error.

        Args:
            sending: how far the batch was.
            error: what ended it.
        """


class WantedFiles:
    """Asks the submitter which jobs it still wants; thread-safe. Methods raise what it raises.

    Args:
        wanted: see :meth:`Journal.wanted`.
        users: returns, by file, the jobs that use it; called once if that matters.
    """

    def __init__(
        self,
        wanted: Callable[[], Iterable[str] | None],
        users: Callable[[], Mapping[str, Collection[str]]] = dict,
    ) -> None:
        self._wanted = wanted
        self._find_users = users
        self._users: Mapping[str, Collection[str]] | None = None
        self._lock = threading.Lock()
        self._jobs: frozenset[str] | None = None
        self._asked_at = -math.inf

    def of(self, files: Iterable[str], *, now: bool = True) -> list[str]:
        """Return those of the files that a job still needs.

        Args:
            files: some of the batch's files.
            now: whether to ask now; if not, an answer may be half a second old.
        """
        jobs = self.ask(now=now)
        if jobs is None:
            return list(files)
        users = self._users
        if users is None:
            users = self._users = self._find_users()
        return [file for file in files if not jobs.isdisjoint(users[file])]

    def ask(self, *, now: bool) -> frozenset[str] | None:
        """Return the names of the jobs that are wanted; ``now`` as for :meth:`of`."""
        with self._lock:
            if now or time.monotonic() >= self._asked_at + _LASTS:
                names = self._wanted()
                self._jobs = None if names is None else frozenset(names)
                self._asked_at = time.monotonic()
            return self._jobs


class Interrupted(BaseException):
    """The progress callback raised ``error``; code in between must not take it for a failure.

    So it has a separate class: an OSError from a terminal is not a broken connection.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Meter:
    """Counts the work of many threads, and reports it now and then; never backwards.

    Args:
        tell: called by one thread at a time; None: no reports.
    """

    def __init__(self, tell: OnProgress | None = None) -> None:
        self._progress = tell
        self._lock = threading.Lock()
        self._step: Step = "reading"
        self._unit: Literal["bytes", "files", "jobs"] = "bytes"
        self._done = self._reported = self._total = 0
        self._when = -math.inf
        self._trouble: BaseException | None = None

    def begin(self, step: Step, total: int, unit: Literal["bytes", "files", "jobs"]) -> None:
        """Begin a step, or go back to it with another total; raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._step, self._unit = step, unit
            self._done = self._reported = 0
            self._total = total
            self._report()

    def add(self, count: int) -> None:
        """Count work; less than 0 is work to be repeated. Raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._done += count
            # What is repeated after the last of it was told is not told again.
            if self._reported < self._total and (
                self._done >= self._total or time.monotonic() >= self._when + _PAUSE
            ):
                self._report()

    def finish(self) -> None:
        """Report that the step is done; raises :class:`Interrupted`."""
        with self._lock:
            self._check()
            self._done = self._total
            if self._reported < self._total:
                self._report()

    def _check(self) -> None:
        if self._trouble is not None:
            raise Interrupted(self._trouble)

    def _report(self) -> None:
        self._reported = min(max(self._reported, self._done), self._total)
        if self._progress is None:
            return
        try:
            self._progress(Progress(self._step, self._reported, self._total, self._unit))
        except BaseException as error:
            self._trouble = error
            raise Interrupted(error) from error
        self._when = time.monotonic()
