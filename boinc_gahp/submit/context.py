"""A project as one account sees it, and what this process has learned from it.

What is learned is a bounded memory, never an authority. Everything in it can be asked for again;
nothing in it decides whether something was done: the server is right (``docs/architecture.rst``,
"Rules").
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from boinc_gahp.errors import LedgerError
from boinc_gahp.states import BatchState, JobState
from boinc_gahp.submit.digests import Digests
from boinc_gahp.submit.query import find_batch, oldest_named
from boinc_gahp.submit.singleflight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.ledger.ledger import Ledger
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import BatchInfo, JobInfo, ResultInfo
    from boinc_gahp.submit.generated_files import GeneratedFiles
    from boinc_gahp.submit.published import Published
    from boinc_gahp.templates.types import InputTemplate, OutputTemplate

log = logging.getLogger("boinc_gahp.submit")

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")

#: How many names of batches are remembered.
MAX_NAMES = 20_000
#: How many jobs' ids are remembered, over all batches; about 300 bytes each.
MAX_JOBS = 300_000
MAX_APPS = 1_000
#: For how many names it is remembered when they were last sent.
_LANDED = 20_000


class Recent(Generic[K, V]):
    """A thread-safe dictionary that drops the least recently set values."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value, or None."""
        with self._lock:
            return self._values.get(key)

    def set(self, key: K, value: V) -> None:
        """Set or replace a value."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)

    def drop(self, key: K) -> None:
        """Remove a value if it is there."""
        with self._lock:
            self._values.pop(key, None)


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch as query_batch showed it.

    A batch is one submit_batch (``web-rpcs.rst``, "submit_batch"), so in any state but INIT the
    list of its jobs is final, and so is a canonical instance once there is one.
    """

    batch: BatchInfo
    jobs: Mapping[str, JobInfo]

    @property
    def final(self) -> bool:
        """Whether no job can be added any more."""
        return self.batch.state not in (BatchState.INIT, BatchState.UNKNOWN)


@dataclass(frozen=True, slots=True)
class AppTemplates:
    """An app's templates, parsed and as the project's text; ``asked_at`` is the time of asking."""

    asked_at: float
    text: str
    input: InputTemplate
    output: OutputTemplate


class ProjectCache:
    """What this process has learned from one project with one account; thread-safe.

    Args:
        project: the project to ask.
        templates_cached: seconds after which an app's templates are asked for again.

    Attributes:
        shadowed: the ids of batches whose names the project takes for another account's.
        submitted: batches that were seen in a later state than INIT; no batch goes back to INIT.
        mentioned: batches that somebody has asked for since this process began.
    """

    def __init__(self, project: WebRpcs, templates_cached: float = 300.0) -> None:
        self._project = project
        self._templates_cached = templates_cached
        self._born = time.monotonic()
        self.shadowed: Recent[str, int] = Recent(MAX_NAMES)
        self.submitted: Recent[str, bool] = Recent(MAX_NAMES)
        self.mentioned: Recent[str, bool] = Recent(MAX_NAMES)
        self._warned: Recent[Hashable, bool] = Recent(MAX_NAMES)
        self._templates: SingleFlight[str, AppTemplates] = SingleFlight(MAX_APPS)
        self._views: SingleFlight[int | str, BatchView] = SingleFlight(
            MAX_JOBS, lambda view: len(view.jobs) + 1
        )
        self._failed: SingleFlight[int, Mapping[str, JobInfo]] = SingleFlight(
            MAX_JOBS, lambda jobs: len(jobs) + 1
        )
        self._batches: SingleFlight[None, tuple[BatchInfo, ...]] = SingleFlight(MAX_NAMES, len)

    # Batches.

    def own_batch(self, name: str) -> int | None:
        """Return the id of the account's batch of this name, which finds another account's."""
        own = oldest_named(self.batches(), name)
        if own is None:
            return None
        self.shadowed.set(name, own.id)
        return own.id

    def forget_batch(self, name: str) -> None:
        """Forget a batch that was retired."""
        self._views.forget(name)
        while (key := self._views.find(lambda view: view.batch.name == name)) is not None:
            self._views.forget(key)
        self.shadowed.drop(name)
        self.submitted.drop(name)

    def warn_once(self, about: Hashable, message: str, *args: object) -> None:
        """Log a warning unless one about the same was logged before."""
        if self._warned.get(about) is None:
            self._warned.set(about, True)
            log.warning(message, *args)

    @property
    def age(self) -> float:
        """Seconds since this process began to use the project."""
        return time.monotonic() - self._born

    # Jobs.

    def view(self, batch: int | str, good: Callable[[BatchView], bool]) -> BatchView:
        """Return a view of a batch (id or name) that is ``good`` or newer than this call.

        Raises:
            RpcError: see :meth:`WebRpcs.query_batch`.
        """

        def ask() -> BatchView:
            details = (
                self._project.query_batch(batch_id=batch)
                if isinstance(batch, int)
                else find_batch(self._project, batch)
            )
            return BatchView(details.batch, {job.name: job for job in details.jobs})

        return self._views.get(batch, ask, good)

    def job_names(self, batch_id: int) -> tuple[str, ...]:
        """Return the names of a batch's jobs, from memory if they cannot change any more."""
        return tuple(self.view(batch_id, lambda view: view.final).jobs)

    def batch_of(self, job_name: str) -> int | str | None:
        """Return the id or name of a batch that this process has seen the job in."""
        return self._views.find(lambda view: job_name in view.jobs)

    def batches(self) -> tuple[BatchInfo, ...]:
        """Return the account's batches, without retired ones, as query_batches lists them now."""
        return self._batches.get(None, self._project.query_batches, lambda _: False)

    def failures(self, batch_id: int, job_name: str) -> JobInfo | None:
        """Return the details of a job that has no canonical instance, or None."""

        def ask() -> Mapping[str, JobInfo]:
            details = self._project.query_batch(batch_id=batch_id, get_job_details=True)
            return {job.name: job for job in details.jobs if not job.canonical_instance_id}

        def ended(jobs: Mapping[str, JobInfo]) -> bool:
            job = jobs.get(job_name)
            return job is not None and job.state is JobState.FAILED

        return self._failed.get(batch_id, ask, ended).get(job_name)

    def instance(self, job: JobInfo) -> ResultInfo | None:
        """Return a job's canonical instance, or None if the project does not show it."""
        if not job.canonical_instance_id:
            return None
        instances = self._project.query_job(job.id)
        return next((each for each in instances if each.id == job.canonical_instance_id), None)

    # Apps.

    def templates(self, app_name: str, project: WebRpcs | None = None) -> AppTemplates:
        """Return an app's templates, asked for again after a while.

        Args:
            app_name: the app.
            project: the project with a separate deadline, if need be.

        Raises:
            RpcError: see :meth:`WebRpcs.get_templates`.
            TemplateError: the project's templates cannot be read.
        """

        def ask() -> AppTemplates:
            from boinc_gahp.templates.reading import read_templates  # noqa: PLC0415
            from boinc_gahp.templates.rules import faults  # noqa: PLC0415  (both not for a ping)

            asked_at = time.monotonic()
            text = (project or self._project).get_templates(app_name=app_name)
            templates = read_templates(text)
            for problem in (problem for each in templates for problem in faults(each)):
                self.warn_once(
                    (problem.code, app_name),
                    "App %s of %s: %s",
                    *(app_name, self._project.host, problem.text),
                )
            return AppTemplates(asked_at, text, *templates)

        def is_fresh(answer: AppTemplates) -> bool:
            return time.monotonic() - answer.asked_at < self._templates_cached

        until = (project or self._project).deadline
        return self._templates.get(app_name, ask, is_fresh, until)


class Uploads:
    """Physical names that threads of this process are sending, so that no file is sent twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._released = threading.Condition(self._lock)
        #: Names, each with the mark of the claim that it is in.
        self._flying: dict[str, object] = {}
        self._landed: Recent[str, float] = Recent(_LANDED)

    @contextmanager
    def claim(self, names: Iterable[str], asked_at: float) -> Iterator[dict[str, object]]:
        """Yield those of ``names`` that nobody is sending; the caller has them until released.

        The end of the block releases them, too. The values are one mark for this claim.
        ``asked_at`` is when the project was asked for the names (:func:`time.monotonic`); a name
        that was released after that is left out, because it has to be asked for again.
        """
        with self._lock:
            free = (
                name
                for name in names
                if name not in self._flying and (self._landed.get(name) or -math.inf) < asked_at
            )
            mine = dict.fromkeys(free, object())
            self._flying.update(mine)
        try:
            yield mine
        finally:
            self.release(mine, list(mine))

    def release(self, mine: dict[str, object], names: Iterable[str]) -> None:
        """Take ``names`` out of a claim, so that others can go on with them."""
        with self._lock:
            now = time.monotonic()
            for name in names:
                del self._flying[name]
                self._landed.set(name, now)
                del mine[name]
            self._released.notify_all()

    def wait(self, names: Iterable[str], timeout: float) -> None:
        """Wait until other threads have sent those of ``names`` that they are sending."""
        with self._lock:
            claims = {name: self._flying[name] for name in names if name in self._flying}
            self._released.wait_for(
                lambda: all(self._flying.get(name) is not claim for name, claim in claims.items()),
                timeout,
            )


@dataclass(frozen=True, slots=True)
class Context:
    """A project as one account sees it, and what belongs to them on this machine.

    Attributes:
        project: the web RPCs, with the account's authenticator in them.
        settings: all settings.
        project_settings: the project's own settings.
        ledger: the ledger, which outlives the process; None if there is none.
        cache: what this process has learned from the project.
        digests: MD5s of local files.
        uploads: the files that threads of this process are sending.
        made: files that are made for container jobs.
        published: files that volunteers fetch from another web server; None: there are none.
        reconciling: held by the thread that sends requests that are owed to the project.
    """

    project: WebRpcs
    settings: Settings
    project_settings: ProjectSettings
    ledger: Ledger | None
    cache: ProjectCache
    made: GeneratedFiles
    published: Published | None = None
    digests: Digests = field(default_factory=lambda: Digests(None))
    uploads: Uploads = field(default_factory=Uploads)
    reconciling: threading.Lock = field(default_factory=threading.Lock)

    @property
    def owner(self) -> tuple[str, str]:
        """The first two arguments of the ledger's methods: project URL and account."""
        return self.project.url, self.project.account

    def forget_batch(self, name: str) -> None:
        """Forget a batch that is over: nothing is needed for it any more."""
        self.cache.forget_batch(name)
        if self.published is not None:
            self.published.forget(name)

    def tidy(self) -> None:
        """Remove published files that no batch needs any more, now and then."""
        if self.published is not None:
            self.published.tidy(self.cache.batches)

    def note(self, write: Callable[[Ledger], object], otherwise: str) -> None:
        """Write to the ledger, if there is one; if that fails, the work goes on.

        Args:
            write: writes.
            otherwise: what a failure means, for the log.
        """
        if self.ledger is None:
            return
        try:
            write(self.ledger)
        except LedgerError as error:
            log.warning("%s; %s", error, otherwise)
