"""Whether a failure concerns one batch, one job, or the whole project.

A project that fails at one batch, or refuses it, may handle all others well: a front end gives up
on a slow request, PHP dies of a large one, a row of the database is wrong. So each thing has its
own pauses. All of them wait only if the project cannot be used at all: if it says so itself, or
does not answer a ping either.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    BadAuthenticator,
    LedgerError,
    NoFileAccess,
    ProjectDown,
    ProjectError,
    RpcError,
)
from boinc_gahp.htcondor._retry_times import FailureBackoff, is_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from boinc_gahp.errors import GahpError

log = logging.getLogger("boinc_gahp.htcondor")


class Pauses:
    """What has to wait until when, for one account on a project; thread-safe.

    A key is a tuple of an action and its object, such as ``("retire", 17)``. Times are
    seconds since the epoch.

    Args:
        ping: checks that the project answers; raises RpcError if not.
        record_trouble: notes in the ledger what is wrong with the project (None: nothing); raises
            LedgerError.
        pauses: the shortest and the longest pause between two attempts, in seconds.
        longest: the longest pause of a manager, in seconds.
        wake: called when the project answers again.
        url: the project's address, for the log.
    """

    def __init__(
        self,
        *,
        ping: Callable[[], None],
        record_trouble: Callable[[str | None], None],
        pauses: Callable[[], tuple[float, float]],
        longest: Callable[[], float],
        wake: Callable[[], None],
        url: str,
    ) -> None:
        self._ping = ping
        self._record_trouble = record_trouble
        self._pauses = pauses
        self._longest = longest
        self._wake = wake
        self._url = url
        self._project = FailureBackoff(pauses)
        self._last_message = ""
        self._lock = threading.Lock()
        self._backoffs: dict[Hashable, FailureBackoff] = {}
        self._pinging = threading.Lock()
        self._pinged = -math.inf
        self._answers = True

    def until(self, key: Hashable = None) -> float:
        """Return when to ask about a thing, or about anything; 0 if there is no trouble."""
        backoff = self._backoffs.get(key)
        return max(self._project.until, 0.0 if backoff is None else backoff.until)

    def wait(self, key: Hashable, now: float, not_before: float = 0.0) -> float:
        """Return when to ask about a thing, if that is in the future; 0 for now.

        Args:
            key: the thing to ask about.
            now: the time.
            not_before: a time that the ledger has for it; the clock may have been set back since.
        """
        longest = self._longest()
        times = (self.until(key), not_before)
        return max((at for at in times if is_ahead(at, now, longest)), default=0.0)

    def failed(self, key: Hashable, error: GahpError, now: float | None = None) -> float:
        """Note a failure of a thing; return when to try again.

        May send the project a ping.
        """
        if self.is_of_project(error, now):
            return self._project.until
        return self.later(key, now)

    def later(self, key: Hashable, now: float | None = None) -> float:
        """Let a thing wait, without asking the project; return until when."""
        with self._lock:
            backoff = self._backoffs.setdefault(key, FailureBackoff(self._pauses))
        return backoff.failed(time.time() if now is None else now)

    def is_of_project(self, error: GahpError, now: float | None = None) -> bool:
        """Tell whether other requests would fail, too; if so, all wait for a while."""
        if not isinstance(error, RpcError) or not self._is_everywhere(error):
            return False
        now = time.time() if now is None else now
        # Requests that fail at the same time count as one failure.
        if not self._project.until > now:
            self._project.failed(now)
        words = str(error)
        log.log(
            logging.DEBUG if words == self._last_message else logging.WARNING,
            "All requests to %s have to wait: %s",
            self._url,
            words,
        )
        self._last_message = words
        self._note(words)
        return True

    def lasted(self, key: Hashable) -> float:
        """Return for how many seconds a thing has been failing; 0 if it has not."""
        backoff = self._backoffs.get(key)
        return 0.0 if backoff is None else backoff.lasted

    def has(self, key: Hashable) -> bool:
        """Tell whether the last request about a thing failed."""
        return key in self._backoffs

    def succeeded(self, key: Hashable = None) -> bool:
        """Note that a request about a thing succeeded; return whether it, or all, failed before.

        From now on nothing has to wait because of the project.
        """
        with self._lock:
            before = self._backoffs.pop(key, None) is not None
        if self._project.succeeded():
            log.info("%s answers again", self._url)
            self._wake()
            before = True
        self._last_message = ""
        self._note(None)
        return before

    def forget(self, key: Hashable) -> None:
        """Forget a thing that will not be asked about again."""
        with self._lock:
            self._backoffs.pop(key, None)

    # -- whose it is

    def _is_everywhere(self, error: RpcError) -> bool:
        if isinstance(error, ProjectDown | BadAuthenticator | NoFileAccess):
            return True
        if isinstance(error, ProjectError):
            return False
        return not self._does_answer()

    def _does_answer(self) -> bool:
        """Send the project a ping; callers that ask at the same time share its answer."""
        begun = time.monotonic()
        with self._pinging:
            if self._pinged < begun:
                self._pinged = time.monotonic()
                try:
                    self._ping()
                    self._answers = True
                except RpcError as error:
                    log.debug("A ping was not answered either: %s", error)
                    self._answers = False
            return self._answers

    def _note(self, words: str | None) -> None:
        try:
            self._record_trouble(words)
        except LedgerError as error:
            log.warning("Cannot record whether %s answers: %s", self._url, error)
