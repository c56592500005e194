"""What a manager's parts share: pauses after failures, and scopes that protect directories.

A scope is closed before BLAH_JOB_CANCEL is answered
(:class:`boinc_gahp.fetch.destinations.CancelScope`).
"""

from __future__ import annotations

import logging
import math
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import LedgerError, ProjectError, RpcError
from boinc_gahp.fetch.destinations import CancelScope

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from boinc_gahp.config.settings import HTCondor, Settings
    from boinc_gahp.errors import GahpError
    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.ledger.jobs import JobLedger

log = logging.getLogger("boinc_gahp.htcondor")

T = TypeVar("T")

#: Seconds that a cancel waits for a fetch to remove its temporary files. That is all that the fetch
#: can still do: it writes no content once the scope is closed.
CLEARING = 10.0
#: Many daemons may wait for one project: they must not come back all at once.
_JITTER = (0.8, 1.2)
#: Seconds to wait after an error of the ledger, or an unexpected one.
FAULT = 5.0
#: The longest wait in seconds where the settings do not give one.
_OTHERWISE = 120.0


class NoLongerWanted(Exception):
    """HTCondor has cancelled a job that is being fetched, or a batch is not to be sent (any more).

    The directory of such a job is to be left as it is.

    Attributes:
        has_changed: whether jobs of the batch were cancelled before anything was sent, so that it
            is to be sent without them.
    """

    def __init__(self, *, has_changed: bool = False) -> None:
        super().__init__()
        self.has_changed = has_changed


class CancelScopes:
    """The cancel scopes of this process, by job; thread-safe.

    A fetch opens its scope first, and only then asks the ledger whether the job is still wanted
    (:meth:`JobLedger.writing`): so a later cancel finds the scope.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._scopes: dict[int, CancelScope] = {}

    @contextmanager
    def open(self, job_id: int) -> Iterator[CancelScope]:
        """Yield a scope for the job while the block runs; only one fetch of a job at a time."""
        scope = CancelScope(error=NoLongerWanted)
        with self._changed:
            self._scopes[job_id] = scope
        try:
            yield scope
        finally:
            with self._changed:
                del self._scopes[job_id]
                self._changed.notify_all()

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
        project: the project as the account sees it; its settings can be changed.
        jobs: the ledger of jobs.
        owner: the project's URL and the account (:attr:`Authenticator.account`), as the ledger has
            them.
        settings: all settings.
        scopes: the cancel scopes of this process.

    Attributes:
        url: the project's URL.
        news: set when there may be work.
        stopping: set when the process is about to end: begin nothing long.
        pauses: what has to wait, and until when.
    """

    def __init__(
        self,
        project: FetchContext,
        jobs: JobLedger,
        owner: tuple[str, str],
        settings: Settings,
        scopes: CancelScopes,
    ) -> None:
        self._now = (settings, project)
        self.jobs = jobs
        self.owner = owner
        self.url = owner[0]
        self.scopes = scopes
        self.news = threading.Event()
        self.stopping = threading.Event()
        self.pauses = Pauses(self)

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
        return 2.0 * max(self.htcondor.poll_shortest, self.htcondor.poll_longest) + _OTHERWISE

    @property
    def project(self) -> FetchContext:
        """The project, for work that is begun now."""
        return self._now[1]

    def wake(self) -> None:
        """Have the manager look soon for work to do; returns at once."""
        self.news.set()

    def change(self, settings: Settings, project: FetchContext) -> None:
        """Use these for all work that is begun from now on."""
        self._now = (settings, project)


def is_ahead(at: float, now: float, longest: float) -> bool:
    """Tell whether ``at`` is in the future; times are in seconds since the epoch.

    A time further away than the longest pause does not count: it was written before the clock was
    set back.
    """
    return now < at <= now + longest


def drop_past(times: dict[int, float], now: float, longest: float) -> None:
    """Drop times that need no waiting any more; other threads may set times meanwhile."""
    for key, at in list(times.items()):
        if not is_ahead(at, now, longest):
            times.pop(key, None)


def going(now: float) -> Callable[[], float]:
    """Return a clock in seconds that starts at ``now``, and that cannot be set."""
    began = time.monotonic()
    return lambda: now + time.monotonic() - began


class FailureBackoff:
    """Ever longer pauses between attempts that fail; times are seconds since the epoch."""

    def __init__(self) -> None:
        self._failures = 0
        self._since = time.monotonic()
        self._until = 0.0
        # The same by a clock that cannot be set.
        self._end = -math.inf

    @property
    def until(self) -> float:
        """The time before which nothing should be tried; 0: the clock was set back since."""
        # Not the time now: whoever has read the clock a moment ago would wait for that.
        is_over = time.monotonic() >= self._end
        return 0.0 if is_over and self._until > time.time() else self._until

    @property
    def lasted(self) -> float:
        """Seconds since the first failure."""
        return time.monotonic() - self._since

    def failed(self, now: float, htcondor: HTCondor) -> float:
        """Note that an attempt has failed; return the time of the next one."""
        pauses = Backoff(htcondor.poll_shortest, htcondor.poll_longest, jitter=_JITTER)
        pause = pauses.seconds(self._failures)
        self._failures += 1
        self._until, self._end = now + pause, time.monotonic() + pause
        return self._until


class Pauses:
    """What has to wait until when, for one account on a project; thread-safe.

    A project that fails at one batch, or refuses it, may handle all others well: a front end gives
    up on a slow request, PHP dies of a large one, a row of the database is wrong. So each thing has
    its own pauses. All of them wait only if the project cannot be used at all: if it says so
    itself, or does not answer a ping either.

    A key is a tuple of an action and its object, such as ``("retire", 17)``; None stands for the
    whole project. Times are seconds since the epoch.

    Args:
        context: the account's.
    """

    def __init__(self, context: AccountContext) -> None:
        self._context = context
        self._last_message = ""
        self._lock = threading.Lock()
        #: Of what has failed since it last succeeded.
        self._backoffs: dict[Hashable, FailureBackoff] = {}
        self._pinging = threading.Lock()
        self._pinged = -math.inf
        self._answers = True

    def until(self, key: Hashable = None) -> float:
        """Return when to ask about a thing, or about anything; 0 if there is no trouble."""
        failing = filter(None, map(self._backoffs.get, (None, key)))
        return max((backoff.until for backoff in failing), default=0.0)

    def wait(self, key: Hashable, now: float, not_before: float = 0.0) -> float:
        """Return when to ask about a thing, if that is in the future; 0 for now.

        Args:
            key: the thing to ask about.
            now: the time.
            not_before: a time that the ledger has for it; the clock may have been set back since.
        """
        longest = self._context.longest_pause
        times = (self.until(key), not_before)
        return max((at for at in times if is_ahead(at, now, longest)), default=0.0)

    def failed(self, key: Hashable, error: GahpError, now: float | None = None) -> float:
        """Note a failure of a thing; return when to try again.

        May send the project a ping.
        """
        if self.is_of_project(error, now):
            return self.until()
        return self.later(key, now)

    def later(self, key: Hashable, now: float | None = None) -> float:
        """Let a thing wait, without asking the project; return until when."""
        with self._lock:
            backoff = self._backoffs.setdefault(key, FailureBackoff())
            return backoff.failed(time.time() if now is None else now, self._context.htcondor)

    def is_of_project(self, error: GahpError, now: float | None = None) -> bool:
        """Tell whether other requests would fail, too; if so, all wait for a while."""
        if not isinstance(error, RpcError) or not self._is_everywhere(error):
            return False
        # Requests that fail at the same time count as one failure.
        if self.until() <= (time.time() if now is None else now):
            self.later(None, now)
        words = str(error)
        log.log(
            logging.DEBUG if words == self._last_message else logging.WARNING,
            "All requests to %s have to wait: %s",
            self._context.url,
            words,
        )
        self._last_message = words
        self._note(words)
        return True

    def lasted(self, key: Hashable) -> float:
        """Return for how many seconds a thing has been failing; 0 if it has not."""
        backoff = self._backoffs.get(key)
        return 0.0 if backoff is None else backoff.lasted

    def succeeded(self, key: Hashable = None) -> bool:
        """Note that a request about a thing succeeded; return whether it, or all, failed before.

        From now on nothing has to wait because of the project.
        """
        project_failed = self.forget(None)
        if project_failed:
            log.info("%s answers again", self._context.url)
            self._context.wake()
        self._last_message = ""
        self._note(None)
        return self.forget(key) or project_failed

    def forget(self, key: Hashable) -> bool:
        """Forget the failures of a thing; return whether there were any."""
        with self._lock:
            return self._backoffs.pop(key, None) is not None

    # -- whose it is

    def _is_everywhere(self, error: RpcError) -> bool:
        if isinstance(error, ProjectError):
            return error.concerns in {"project", "account"}
        return not self._does_answer()

    def _does_answer(self) -> bool:
        """Send the project a ping; callers that ask at the same time share its answer."""
        begun = time.monotonic()
        with self._pinging:
            if self._pinged < begun:
                self._pinged = time.monotonic()
                try:
                    self._context.project.project.ping()
                    self._answers = True
                except RpcError as error:
                    log.debug("A ping was not answered either: %s", error)
                    self._answers = False
            return self._answers

    def _note(self, words: str | None) -> None:
        context = self._context
        if context.stopping.is_set():
            return  # work under way fails because connections are closed
        try:
            context.jobs.project_trouble(*context.owner, words)
        except LedgerError as error:
            log.warning("Cannot record whether %s answers: %s", self._context.url, error)


class ErrorGuard:
    """Logs the errors of a manager's work and has it done again later; thread-safe.

    Args:
        worker: the manager, for the log.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._last_message = ""

    def __call__(self, what: str, work: Callable[[], T]) -> T | float:
        """Return what ``work`` returns; if it fails, when to do it again: :data:`FAULT` from now.

        Args:
            what: the work, for the log: "<worker> could not <what>".
            work: what may fail.
        """
        try:
            return work()
        except LedgerError as error:
            level = logging.DEBUG if str(error) == self._last_message else logging.ERROR
            log.log(level, "%s could not %s: %s", self._worker, what, error)
            self._last_message = str(error)
        except Exception:
            log.exception("%s could not %s", self._worker, what)
        return time.time() + FAULT
