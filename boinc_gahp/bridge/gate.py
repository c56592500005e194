"""What stands before a job's directory: whether anything may be written there just now.

Nothing may appear in a job's directory once HTCondor was told that the job is cancelled
(``gridmanager-batch.rst``, "Life of a job"): it may have started the job anew in it. Likewise
nothing is to appear in a person's directory once they have broken a fetch off.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from boinc_gahp.errors import GahpError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Stopped(GahpError):
    """What was under way is no longer wanted; what was complete by then stays."""

    code = "BG-STOPPED"


def _stopped() -> Exception:
    return Stopped("stopped on request: what is complete stays, fetch again for the rest")


class Gate:
    """Stands before a directory while outputs are fetched into it; for any thread.

    Every change in the directory (a write, rename, mkdir or removal of what may be another's) is
    made inside ``with gate:``, short ones only, for :meth:`close` waits for it. It may be entered
    by several threads, and again inside itself.

    Args:
        events: each of them, when it is set, closes it, too; then a temporary file vanishes when
            its fetch comes to its next step.
        error: returns what is raised when it is closed.
    """

    def __init__(self, *events: threading.Event, error: Callable[[], Exception] = _stopped) -> None:
        self._changed = threading.Condition()
        self._events = events
        self._error = error
        self._inside = 0
        self._closed = False
        self._clearings: set[Callable[[], None]] = set()

    def check(self) -> None:
        """Raise if it is closed."""
        if self._closed or any(event.is_set() for event in self._events):
            raise self._error()

    def close(self) -> None:
        """Let nobody in from now on; returns when everybody is out."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)
            # A fetch may be waiting for the network: what it has begun is not left until it wakes.
            while self._clearings:
                self._clearings.pop()()

    def at_close(self, clear: Callable[[], None]) -> None:
        """Have ``clear``, which never fails, called by :meth:`close`; from inside only."""
        with self._changed:
            self._clearings.add(clear)

    def not_at_close(self, clear: Callable[[], None]) -> None:
        """Take :meth:`at_close` back; harmless where it was not called."""
        with self._changed:
            self._clearings.discard(clear)

    def __enter__(self) -> None:
        """Go in; raises if it is closed."""
        with self._changed:
            self.check()
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Come out."""
        with self._changed:
            self._inside -= 1
            if not self._inside:
                self._changed.notify_all()


#: Stands open for good: for fetches that no cancel can come after.
OPEN = Gate()
