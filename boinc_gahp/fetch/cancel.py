"""Whether anything may be written into a job's directory now.

Nothing may appear in a job's directory once HTCondor was told that the job is cancelled
(``gridmanager-batch.rst``, "Life of a job"): it may have started the job again there. Likewise
nothing may appear in a person's directory once they have stopped a fetch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from boinc_gahp.errors import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable


def _stopped() -> Exception:
    return Stopped("stopped on request: what is complete stays, fetch again for the rest")


class CancelScope:
    """Guards a directory while outputs are fetched into it; thread-safe.

    Every change in the directory (a write, a rename, a mkdir, or the removal of a file that may be
    somebody else's) is made inside ``with scope:``. Changes have to be short, because :meth:`close`
    waits for them. Several threads may be inside, and a thread may enter again.

    Args:
        events: each of these closes the scope, too, when it is set; a temporary file is then
            removed at the next step of its fetch.
        error: returns the exception to raise when the scope is closed.
    """

    def __init__(self, *events: threading.Event, error: Callable[[], Exception] = _stopped) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._events = events
        self._error = error
        self._inside = 0
        self._closed = False
        self._clearings: set[Callable[[], None]] = set()

    def check(self) -> None:
        """Raise if the scope is closed."""
        if self._closed:
            raise self._error()
        for event in self._events:
            if event.is_set():
                raise self._error()

    def close(self) -> None:
        """Let no thread in from now on; returns when all threads are out."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)
            # A fetch may be waiting for the network: its temporary files are removed already now.
            while self._clearings:
                self._clearings.pop()()

    def at_close(self, clear: Callable[[], None]) -> None:
        """Have :meth:`close` call ``clear``, which must not fail; only called from inside."""
        with self._lock:
            self._clearings.add(clear)

    def not_at_close(self, clear: Callable[[], None]) -> None:
        """Undo :meth:`at_close`; harmless if it was not called."""
        with self._lock:
            self._clearings.discard(clear)

    def __enter__(self) -> None:
        """Enter; raises if the scope is closed."""
        with self._lock:
            self.check()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        """Leave."""
        with self._lock:
            self._inside -= 1
            if not self._inside and self._closed:
                self._changed.notify_all()


#: For fetches that cannot be cancelled; nobody closes it.
NEVER_CANCELLED = CancelScope()
