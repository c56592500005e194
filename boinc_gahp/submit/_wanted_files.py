"""Which files of a batch are still needed while they are being sent to the project."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

#: Seconds for which an answer is used in the middle of a file.
_LASTS = 0.5


class WantedFiles:
    """Asks the submitter which jobs it still wants; thread-safe. Methods raise what it raises.

    Args:
        wanted: see :meth:`boinc_gahp.submit.journal.Journal.wanted`.
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
        jobs = self._ask(now=now)
        if jobs is None:
            return list(files)
        users = self._users
        if users is None:
            users = self._users = self._find_users()
        return [file for file in files if not jobs.isdisjoint(users[file])]

    def check(self) -> None:
        """Ask now and then, during work for all jobs."""
        self._ask(now=False)

    def _ask(self, *, now: bool) -> frozenset[str] | None:
        with self._lock:
            if now or time.monotonic() >= self._asked_at + _LASTS:
                names = self._wanted()
                self._jobs = None if names is None else frozenset(names)
                self._asked_at = time.monotonic()
            return self._jobs
