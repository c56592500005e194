"""What the page knows of the projects: asked for once for all tabs, and only while one is open."""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from boinc_gahp.api.family import RetryChain, note_of, standing_among
from boinc_gahp.api.outputs.fetching import fetch
from boinc_gahp.api.outputs.folders import folder_name
from boinc_gahp.api.outputs.logs import attempts_of, log_of, reasons
from boinc_gahp.api.project import Project
from boinc_gahp.api.watching import MOST, Counting, Poll, PollPauses
from boinc_gahp.errors import GahpError, OutputError
from boinc_gahp.states import BatchState
from boinc_gahp.text import size
from boinc_gahp.threads import start

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from boinc_gahp import JobEnd
    from boinc_gahp.api.batch import Batch, BatchJob
    from boinc_gahp.api.family import RetryStatus
    from boinc_gahp.api.outputs.logs import Reason

T = TypeVar("T")

_POLL = Poll()

#: Seconds that a page waits for a first answer, and for a newer one.
FIRST = 5.0
_NEWER = 0.5
#: Seconds after which a project is given up for now: for its list of batches, and for the rest.
_LIST_TIMEOUT = 10.0
_TIMEOUT = 60.0
#: After so many seconds without a look, somebody comes anew.
_AWAY = 60.0
#: How many answers about single batches and jobs a project's part of the board keeps, and how many
#: jobs' outputs.
_KEPT = 32
_FETCHED = 16
#: Outputs of a job that together have more bytes are not fetched for a look.
_MOST_BYTES = 50e6


class Kept(Generic[T]):
    """An answer of a project, and when to ask for it again.

    It is asked for on a thread, so that a project that hangs keeps nobody waiting for long; and
    only when somebody looks, with pauses as ``batch wait`` makes them.

    Attributes:
        value: the last answer; None: there was none yet.
        trouble: why there was none the last time.
        at: when the last answer came, in seconds since the epoch.
    """

    def __init__(self, ask: Callable[[], T]) -> None:
        self.value: T | None = None
        self.trouble: GahpError | None = None
        self.at = 0.0
        self._ask = ask
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._version: object = None
        self._next = -math.inf
        self._begun = 0.0
        self._pauses = PollPauses(_POLL)

    def ask(self, version: object = None, *, at_once: bool = False) -> None:
        """Begin to ask, if the answer may have changed, and the last one is old enough.

        Args:
            version: as long as it is the same, the answer is, too; None: it may always change.
            at_once: however young the last one is.
        """
        with self._lock:
            now = math.inf if at_once else time.monotonic()
            is_due = version is None or self.trouble is not None or version != self._version
            is_asking = self._asking is not None and self._asking.is_alive()
            if not is_due or is_asking or now < self._next:
                return
            if now > self._next + _AWAY:
                self._begun, self._pauses = time.monotonic(), PollPauses(_POLL)
            self._asking = start(partial(self._renew, version), "page")

    def wait(self, until: float | None = None) -> T | None:
        """Return the answer; wait a little for one that is coming.

        Args:
            until: wait no longer than to this time of ``time.monotonic()``.
        """
        patience = FIRST if self.value is None and self.trouble is None else _NEWER
        if until is not None:
            patience = min(patience, max(0.0, until - time.monotonic()))
        asking = self._asking
        if asking is not None:
            asking.join(patience)
        return self.value

    def look(self, version: object = None, *, at_once: bool = False) -> T | None:
        """Ask, and return the answer; see :meth:`ask`."""
        self.ask(version, at_once=at_once)
        return self.wait()

    def _renew(self, version: object) -> None:
        began = time.monotonic()
        value, trouble = self.value, None
        try:
            value = self._ask()
        except GahpError as error:
            trouble = error
        now = time.monotonic()
        with self._lock:
            changed = trouble is None and value != self.value
            # A project that could not be asked has spent little time on it.
            cost = 0.0 if trouble is not None else now - began
            self._next = now + self._pauses.pause(now - self._begun, cost, changed=changed)
            self.value, self.trouble = value, trouble
            if trouble is None:
                self._version, self.at = version, time.time()


class Source:
    """A project of the settings, and what is known of it.

    Args:
        label: what people call it.
        name: its NAME in the settings; None: the default one.
        config: the settings file to read last; None: as always.

    Attributes:
        batches: the account's batches by their ids, newest first, as the last answer had them.
        listed: the last answer itself.
    """

    def __init__(self, label: str, name: str | None, config: str | None) -> None:
        self.label = label
        self.name = name
        self.config = config
        self.batches: dict[int, Batch] = {}
        self.listed = Kept(self._list)
        self._project: Project | None = None
        self._counting = Counting()
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Kept[object]] = OrderedDict()
        self._rooms: list[Path] = []

    def close(self) -> None:
        """Close the connections, and remove what was fetched for a look."""
        if self._project is not None:
            self._project.close()
        self._remove_rooms(0)

    def jobs(self, batch: Batch) -> Kept[list[BatchJob]]:
        """Return a batch's jobs."""
        version = batch.info, batch.latest_counts
        return self._keep(("jobs", batch.id), version, lambda: list(batch.jobs()))

    def reasons(self, batch: Batch, jobs: list[BatchJob]) -> Kept[tuple[list[Reason], RetryStatus]]:
        """Return why jobs of a batch failed, and how these stand with their retries."""

        def ask() -> tuple[list[Reason], RetryStatus]:
            standing = standing_among(batch, [job.info for job in jobs])
            return reasons(batch, standing.failed), standing

        return self._keep(("reasons", batch.id), batch.info, ask)

    def attempts(self, batch: Batch) -> str:
        """Return which attempts at a batch's jobs have failed while none is done; "": none."""
        if batch.state is not BatchState.IN_PROGRESS or batch.nover > batch.nerror_jobs:
            return ""
        ask = partial(attempts_of, batch, batch.session.rpc)
        return self._keep(("attempts", batch.id), None, ask).wait() or ""

    def end(self, job: BatchJob) -> Kept[JobEnd]:
        """Return how a job ended or how it stands, with its streams and all of its instances."""

        def ask() -> JobEnd:
            end = log_of(job.batch, job.info)
            return end if end.instances else replace(end, instances=job.instances())

        return self._keep(("end", job.id), job.info if job.is_over else None, ask)

    def outputs(self, job: BatchJob) -> Kept[dict[str, Path]]:
        """Return a job's outputs by their names: where they were fetched, or fetched for a look."""
        return self._keep(("outputs", job.id), job.info, partial(self._outputs, job))

    def _list(self) -> list[object]:
        """Ask for the account's batches; return what is known of them."""
        project = self._project
        if project is None:
            project = Project.from_settings(self.name, config=self.config, timeout=_TIMEOUT)
            self._project = project
        rpc = project.rpc.until(time.monotonic() + _LIST_TIMEOUT)
        infos = sorted(rpc.query_batches(), key=lambda info: (info.create_time, info.id))[::-1]
        # The newest batches, whose jobs are counted: a project lists all jobs of each once.
        left, few = MOST, []
        for info in infos:
            if info.state is BatchState.IN_PROGRESS and info.njobs <= left:
                left -= info.njobs
                few.append(info)
        self._counting.update(rpc, few)
        found: dict[int, Batch] = {}
        told: list[object] = []
        for info in infos:
            jobs = self._counting.of(info.id)
            running = None if jobs is None else jobs.running
            found[info.id] = self.batches.get(info.id) or project.handle(info)
            found[info.id].see(info, running, None if jobs is None else jobs.longest)
            told.append((info, running))
        self.batches = found
        return told

    def _keep(self, key: Hashable, version: object, ask: Callable[[], T]) -> Kept[T]:
        """Return the answer that is kept under a key, and ask for it if it may have changed.

        Those that nobody looks at are forgotten.
        """
        with self._lock:
            kept: Kept[T] = self._kept.setdefault(key, Kept(ask))  # type: ignore[assignment]
            self._kept.move_to_end(key)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        kept.ask(version)
        return kept

    def _outputs(self, job: BatchJob) -> dict[str, Path]:
        try:
            return job.outputs
        except OutputError:
            nbytes = sum(
                sum(each.outfile_sizes)
                for each in job.instances()
                if each.id == job.canonical_instance_id
            )
        if nbytes > _MOST_BYTES:
            raise OutputError(f"its outputs have {size(nbytes)}: fetch them on a terminal")
        room = Path(tempfile.mkdtemp(prefix="boinc_gahp-"))
        with self._lock:
            self._rooms.append(room)
        self._remove_rooms(_FETCHED)
        no_retries = RetryChain(job.batch.name)
        fetched = fetch(job.batch, room, [job.info], no_retries, noted=False, stderr=False)
        for error in fetched.errors.values():
            raise error
        note = note_of(job.batch, job.info, room)
        outputs = {} if note is None else note.outputs
        return {name: room / folder_name(job.name) / path for name, path in outputs.items()}

    def _remove_rooms(self, most: int) -> None:
        """Remove what was fetched for a look, the oldest first, until ``most`` are left."""
        with self._lock:
            number = max(0, len(self._rooms) - most)
            gone, self._rooms = self._rooms[:number], self._rooms[number:]
        for room in gone:
            shutil.rmtree(room, ignore_errors=True)
