"""What fetches into directories and into archives share: jobs to fetch, one job, what stops all."""

from __future__ import annotations

import errno
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.bridge import CollectRequest, EventGate, Progress, Stopped
from boinc_gahp.bridge.parallel import in_parallel
from boinc_gahp.bridge.temporary import NotNow
from boinc_gahp.errors import (
    GahpError,
    OutputError,
    PermissionDenied,
    ProjectDown,
    ProtocolError,
    RpcError,
    TransportError,
)
from boinc_gahp.remote import finding, folders
from boinc_gahp.remote.folders import Note
from boinc_gahp.remote.types import JobState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from boinc_gahp.remote.session import Session
    from boinc_gahp.remote.types import OnProgress
    from boinc_gahp.rpc import JobInfo

#: What the operating system says if no other job's outputs can be written, either.
_NO_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.EMFILE}
#: Seconds to find out whether a project that gave no answer about a job answers at all.
_PATIENCE = 20.0
#: Jobs in a row whose outputs do not come, for the network's sake, before it is given up.
_IN_VAIN = 5
#: Seconds between two looks at how far it is, and that threads have to end when it is broken off.
_PAUSE = 0.1
_LEAVING = 0.5


class Finished(NamedTuple):
    """A job that is done: of 100,000 of them each byte counts."""

    name: str
    id: int
    instance_id: int


class Jobs(NamedTuple):
    """A batch's jobs as they were: those that are done, and how many are in another state."""

    finished: list[Finished]
    failed: int
    unfinished: int


def jobs_of(
    session: Session, batch_id: int, batch_name: str, wanted: Iterable[int | str] | None
) -> Jobs:
    """Return the jobs to fetch.

    Args:
        session: where to ask.
        batch_id: the batch.
        batch_name: its name, for errors.
        wanted: names or ids of jobs; None: all.

    Raises:
        NoSuchJob: the batch has no such job, or the word may stand for two.
        RpcError: the project could not be asked.
    """
    jobs: Iterable[JobInfo] = session.rpc.iter_jobs(batch_id)
    if wanted is not None:
        jobs = finding.jobs(session, batch_id, batch_name, wanted)
    finished: list[Finished] = []
    failed = unfinished = 0
    for job in jobs:
        if job.state is JobState.DONE:
            finished.append(Finished(job.name, job.id, job.canonical_instance_id))
        elif job.state is JobState.FAILED:
            failed += 1
        else:
            unfinished += 1
    return Jobs(finished, failed, unfinished)


def check_answers(session: Session, error: RpcError) -> None:
    """Raise an error if the project does not answer at all, or not this account.

    ``error`` came of one job.

    Raises:
        RpcError: that is so.
    """
    if isinstance(error, (PermissionDenied, ProjectDown)):
        raise error
    if isinstance(error, (TransportError, ProtocolError)):
        try:
            session.rpc.until(time.monotonic() + _PATIENCE).ping()
        except RpcError as trouble:
            raise trouble from error


class StopGate(EventGate):
    """A gate that is closed by either of two events, or by :meth:`close`."""

    def __init__(self, halt: threading.Event, stop: threading.Event | None) -> None:
        super().__init__(halt)
        self._halt = halt
        self._stop = stop
        self._lock = threading.Lock()
        self._clearings: set[Callable[[], None]] = set()

    def check(self) -> None:
        """Raise Stopped if it is closed."""
        if self._stop is not None and self._stop.is_set():
            self._halt.set()
        super().check()

    def close(self) -> None:
        """Close it, and remove what was begun: threads may wait for the network for long."""
        self._halt.set()
        with self._lock:
            clearings = list(self._clearings)
        for clear in clearings:
            clear()

    def at_close(self, clear: Callable[[], None]) -> None:
        """Have ``clear`` called when it is closed, at once if it is."""
        with self._lock:
            self._clearings.add(clear)
        if self._halt.is_set():
            clear()

    def not_at_close(self, clear: Callable[[], None]) -> None:
        """Take it back."""
        with self._lock:
            self._clearings.discard(clear)


class Tally:
    """Counts what has come, in any thread; told by the thread that fetches to whoever asks."""

    def __init__(self, progress: OnProgress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._lock = threading.Lock()
        self._now = (0, 0)
        self._told: tuple[int, int] | None = None

    def count(self, nbytes: int) -> None:
        """Note bytes that have come."""
        with self._lock:
            self._now = self._now[0], self._now[1] + nbytes

    def job(self) -> None:
        """Note that a job is through."""
        with self._lock:
            self._now = self._now[0] + 1, self._now[1]

    def tell(self) -> None:
        """Tell how far it is, if that is news."""
        now = self._now
        if self._progress is not None and now != self._told:
            self._told = now
            self._progress(Progress("fetching", now[0], self._total, "jobs"))
            self._progress(Progress("fetching", now[1], now[1], "bytes"))


class Collector:
    """Fetches jobs of one batch, by several threads; used once.

    Attributes:
        errors: of single jobs, by their names.
        stopped: whether ``stop`` was set before all was done.
    """

    def __init__(
        self,
        session: Session,
        batch_id: int,
        app_name: str,
        *,
        stderr: bool,
        again: bool,
        stop: threading.Event | None,
        tally: Tally,
    ) -> None:
        self.errors: dict[str, GahpError] = {}
        self.stopped = False
        self._session = session
        self._batch_id = batch_id
        self._app_name = app_name
        self._stderr = stderr
        self._again = again
        self._stop = stop
        self._tally = tally
        self._halt = threading.Event()
        self._fatal: BaseException | None = None
        self._in_vain = 0
        self.gate = StopGate(self._halt, stop)

    def each(self, work: Callable[[Finished], None], jobs: list[Finished], threads: int) -> None:
        """Do ``work`` on every job; what concerns one job only goes into :attr:`errors`.

        When it is broken off, what was begun is removed; threads that wait for the network then
        end by themselves, later, without a trace.

        Raises:
            GahpError: what would go wrong with every other job, too.
        """
        ended = threading.Event()

        def run() -> None:
            try:
                in_parallel(noted, jobs, threads=threads, name="fetch", stop=self._halt)
            except BaseException as error:  # noqa: BLE001  (raised below, in the caller's thread)
                self._fatal = self._fatal or error
            finally:
                ended.set()

        def guarded(job: Finished) -> None:
            self.gate.check()
            try:
                work(job)
                self._in_vain = 0
            except Stopped:
                raise
            except GahpError as error:
                self._judge(error)
                self.errors[job.name] = _bare(error)
            self._tally.job()

        def noted(job: Finished) -> None:
            try:
                guarded(job)
            except BaseException as error:
                self._fatal = self._fatal or error
                raise

        self._tally.tell()
        try:
            try:
                threading.Thread(target=run, name="fetch", daemon=True).start()
            except RuntimeError:  # a limit on threads
                run()
            while not ended.wait(_PAUSE):
                self._tally.tell()
                if self._is_over():
                    break
        finally:
            # Ctrl-C comes here, too.
            if not ended.is_set():
                self.gate.close()
                with suppress(KeyboardInterrupt):
                    ended.wait(_LEAVING)
        fatal = self._fatal
        if isinstance(fatal, Stopped) and self._stop is not None and self._stop.is_set():
            self.stopped = True
        elif fatal is not None:
            raise fatal
        self._tally.tell()

    def job(self, job: Finished, folder: Path) -> int:
        """Bring what a folder lacks of a job; return the bytes that are new there, -1 for none.

        Raises:
            OutputError: the folder is another job's, or what :func:`bridge.collect.collect` raises.
            RpcError: likewise.
        """
        folders.clear(folder)
        url = self._session.rpc.url
        note = folders.read_note(folder)
        if note is not None and (note.project, note.job_id) != (url, job.id):
            raise OutputError(
                f"{str(folder)!r} holds the outputs of another job (id {note.job_id} on "
                f"{note.project}): fetch into another directory, or delete it"
            )
        have: dict[str, int] = {}
        stderr: str | None = None
        if note is not None and note.instance_id == job.instance_id and not self._again:
            have = note.there(folder)
            stderr = note.stderr if note.stderr in have else None
            outputs = note.files.keys() - {note.stderr}
            if outputs <= have.keys() and (stderr or not self._stderr):
                return -1
        folders.make(folder, self.gate)
        collected = self._session.bridge.collect(
            CollectRequest(
                self._batch_id,
                self._app_name,
                job.name,
                job.id,
                job.instance_id,
                folder,
                stderr=self._stderr,
                again=self._again,
                have=frozenset(have),
            ),
            self.gate,
            self._tally.count,
        )
        new = {str(path.relative_to(folder)): _size(path) for path in collected.outputs}
        if collected.stderr is not None:
            stderr = str(collected.stderr.relative_to(folder))
            new[stderr] = _size(collected.stderr)
        written = Note(url, job.id, job.instance_id, {**have, **new}, stderr)
        folders.write_note(folder, written, job.name, self.gate)
        return sum(new.values())

    def _is_over(self) -> bool:
        """Return whether nothing more is to be done."""
        try:
            self.gate.check()
        except Stopped as error:
            self._fatal = self._fatal or error
            return True
        return False

    def _judge(self, error: GahpError) -> None:
        """Raise what would go wrong with every other job, too."""
        from boinc_gahp.templates import TemplateError  # noqa: PLC0415  (whoever fetches has it)

        if isinstance(error, (TemplateError, NotNow)):
            raise error
        if isinstance(error, OutputError):
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in _NO_WRITING:
                raise error
        if isinstance(error, RpcError):
            check_answers(self._session, error)
        if isinstance(error, (TransportError, ProtocolError)):
            self._in_vain += 1
            if self._in_vain >= _IN_VAIN:
                raise error


def _bare(error: GahpError) -> GahpError:
    """Return an error without what it holds in memory: frames of every call on its way."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise OutputError(
            f"{str(path)!r} was taken away while it was fetched: {error.strerror or error}"
        ) from error
