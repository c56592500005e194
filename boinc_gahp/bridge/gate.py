"""What stands before a job's directory: whether anything may be written there just now.

Nothing may appear in a job's directory once HTCondor was told that the job is cancelled
(``gridmanager-batch.rst``, "Life of a job"): it may have started the job anew in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from boinc_gahp.errors import GahpError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from types import TracebackType


class Gate(Protocol):
    """Is entered for each change in a job's directory, a short one, and may be closed meanwhile.

    What it raises when it is closed belongs to whoever made it, and passes through here.
    """

    def check(self) -> None:
        """Raise if it is closed."""

    def at_close(self, clear: Callable[[], None]) -> None:
        """Have ``clear`` called when it is closed; from inside only. ``clear`` raises nothing."""

    def not_at_close(self, clear: Callable[[], None]) -> None:
        """Take :meth:`at_close` back; harmless where it was not called."""

    def __enter__(self) -> None:
        """Go in; raises if it is closed. A closer waits until everybody is out."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Come out."""


class _Open:
    """A gate that nobody closes."""

    def check(self) -> None:
        """Do nothing."""

    def at_close(self, clear: Callable[[], None]) -> None:
        """Do nothing."""

    def not_at_close(self, clear: Callable[[], None]) -> None:
        """Do nothing."""

    def __enter__(self) -> None:
        """Go in."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Come out."""


#: Stands open for good: for fetches that no cancel can come after.
OPEN: Gate = _Open()


class Stopped(GahpError):
    """What was under way is no longer wanted; what was complete by then stays."""

    code = "BG-STOPPED"


class EventGate:
    """A gate that is closed by setting an event; then everything raises :class:`Stopped`.

    Nobody is called when the event is set: a temporary file vanishes when its fetch comes to its
    next step.
    """

    def __init__(self, closed: threading.Event) -> None:
        self._closed = closed

    def check(self) -> None:
        """Raise Stopped if the event is set."""
        if self._closed.is_set():
            raise Stopped("stopped on request: what is complete stays, fetch again for the rest")

    def at_close(self, clear: Callable[[], None]) -> None:
        """Do nothing: the fetch clears up itself."""

    def not_at_close(self, clear: Callable[[], None]) -> None:
        """Do nothing."""

    def __enter__(self) -> None:
        """Go in; raises Stopped if the event is set."""
        self.check()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Come out."""
