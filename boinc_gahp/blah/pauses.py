"""Whose trouble it is when something goes wrong: one batch's, one job's, or the project's.

A project that fails at one batch, or refuses it, may do well with all others: a front end gives up
on what takes long, PHP dies of what is too much, a row of the database is not as it should be. So
each thing has pauses of its own, and they all wait only if nothing can be asked of the project:
if it says so itself, or if it does not answer a ping either.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from boinc_gahp.blah.patience import Patience, is_ahead
from boinc_gahp.errors import (
    BadAuthenticator,
    LedgerError,
    NoFileAccess,
    ProjectDown,
    ProjectError,
    RpcError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from boinc_gahp.errors import GahpError

log = logging.getLogger("boinc_gahp.blah")


class Pauses:
    """What has to wait until when, for one account on a project; thread-safe.

    A key is a tuple of what is done and what it is done to, such as ``("retire", 17)``. Times are
    seconds since the epoch.

    Args:
        ping: asks the project whether it answers; raises RpcError if not.
        tell: writes down what is wrong with the project (None: nothing is); raises LedgerError.
        pauses: the shortest and the longest pause between two attempts, in seconds.
        longest: seconds that no pause of a keeper is longer than.
        wake: called when the project answers again.
        url: the project's, for the log.
    """

    def __init__(
        self,
        *,
        ping: Callable[[], None],
        tell: Callable[[str | None], None],
        pauses: Callable[[], tuple[float, float]],
        longest: Callable[[], float],
        wake: Callable[[], None],
        url: str,
    ) -> None:
        self._ping = ping
        self._tell = tell
        self._pauses = pauses
        self._longest = longest
        self._wake = wake
        self._url = url
        self._project = Patience(pauses)
        self._said = ""
        self._lock = threading.Lock()
        self._things: dict[Hashable, Patience] = {}
        self._pinging = threading.Lock()
        self._pinged = -1.0
        self._answers = True

    def until(self, key: Hashable = None) -> float:
        """Return when to ask about a thing, or about anything; 0 where all is well."""
        thing = self._things.get(key)
        return max(self._project.until, 0.0 if thing is None else thing.until)

    def wait(self, key: Hashable, now: float, not_before: float = 0.0) -> float:
        """Return when to ask about a thing, if that is still to come; 0 for now.

        Args:
            key: what is to be asked about.
            now: the time.
            not_before: a time that was written down for it, perhaps by a clock that was set back.
        """
        longest = self._longest()
        times = (self.until(key), not_before)
        return max((at for at in times if is_ahead(at, now, longest)), default=0.0)

    def failed(self, key: Hashable, error: GahpError, now: float | None = None) -> float:
        """Note that something went wrong with a thing; return when to try again.

        May ask the project whether it answers.
        """
        if self.is_of_project(error, now):
            return self._project.until
        return self.later(key, now)

    def later(self, key: Hashable, now: float | None = None) -> float:
        """Let a thing wait, without a look at the project; return until when."""
        with self._lock:
            thing = self._things.setdefault(key, Patience(self._pauses))
        return thing.failed(time.time() if now is None else now)

    def is_of_project(self, error: GahpError, now: float | None = None) -> bool:
        """Tell whether other requests would fail, too; then all wait for a while."""
        if not isinstance(error, RpcError) or not self._is_everywhere(error):
            return False
        now = time.time() if now is None else now
        # What fails at the same time is one failure.
        if not self._project.until > now:
            self._project.failed(now)
        words = str(error)
        log.log(
            logging.DEBUG if words == self._said else logging.WARNING,
            "Everything for %s has to wait: %s",
            self._url,
            words,
        )
        self._said = words
        self._note(words)
        return True

    def lasted(self, key: Hashable) -> float:
        """Return for how many seconds a thing has failed; 0 if it has not."""
        thing = self._things.get(key)
        return 0.0 if thing is None else thing.lasted

    def has(self, key: Hashable) -> bool:
        """Tell whether a thing has failed when it was last asked about."""
        return key in self._things

    def succeeded(self, key: Hashable = None) -> bool:
        """Note that the project did what was asked about a thing; return whether it did not before.

        Nothing has to wait for the project any more.
        """
        with self._lock:
            before = self._things.pop(key, None) is not None
        if self._project.succeeded():
            log.info("%s answers again", self._url)
            self._wake()
            before = True
        self._said = ""
        self._note(None)
        return before

    def forget(self, key: Hashable) -> None:
        """Drop what is remembered of a thing that nobody will ask about any more."""
        with self._lock:
            self._things.pop(key, None)

    # -- whose it is

    def _is_everywhere(self, error: RpcError) -> bool:
        if isinstance(error, ProjectDown | BadAuthenticator | NoFileAccess):
            return True
        if isinstance(error, ProjectError):
            return False
        return not self._does_answer()

    def _does_answer(self) -> bool:
        """Ask the project; those who ask at the same time share what it says."""
        asked = time.monotonic()
        with self._pinging:
            if self._pinged < asked:
                self._pinged = time.monotonic()
                try:
                    self._ping()
                    self._answers = True
                except RpcError as error:
                    log.debug("No answer to a ping either: %s", error)
                    self._answers = False
            return self._answers

    def _note(self, words: str | None) -> None:
        try:
            self._tell(words)
        except LedgerError as error:
            log.warning("What is wrong with %s is not in the ledger: %s", self._url, error)
