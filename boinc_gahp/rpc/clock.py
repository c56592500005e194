"""The project's clock, for times that the project will act on.

A few requests contain a time at which the project is to do something: when a batch expires, or when
a file may be deleted. The project compares it with its own clock; the clock of a submit node may be
wrong by an hour, or a day. So times are converted to the project's clock before they are sent.

The project's time is taken from the ``Date`` header of its replies, which web servers always send,
even with a ping or an error page. ``server_time`` only comes with query_batch2, but the first time
to be sent, a new batch's lease, is needed before that.
"""

from __future__ import annotations

import threading
import time
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.rpc.transport import HttpReply, HttpRequest, Transport

#: Clocks that differ by less than this, in seconds, count as equal, and times are sent unchanged.
_SLACK = 60.0
#: The Date of an exchange that took longer than this, in seconds, is too inexact: some servers give
#: the time of the request, others that of the reply.
_SLOW = 10.0
#: Seconds after which the project's time must be asked for again.
_LASTS = 600.0


class Clock:
    """What is known of a project's clock; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The project's time, and the uptime at that moment; None: the project tells no time.
        self._heard: tuple[float, float] | None = None
        self._when: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether the project has recently told its time, or sent no time."""
        when = self._when
        return when is not None and _uptime() - when < _LASTS

    def hear(self, date: str | None, began: float) -> None:
        """Take the Date of a reply that has just begun.

        Args:
            date: the header's text, None if there is none.
            began: uptime in seconds right before the request was sent.
        """
        now = _uptime()
        if now - began > _SLOW:
            return
        stamp = _seconds(date)
        with self._lock:
            self._when = now
            # A Date has whole seconds, so on average half a second is lost.
            self._heard = None if stamp is None else (stamp + 0.5, (began + now) / 2)

    def to_project(self, at: float) -> float:
        """Return what the project's clock shows when this machine's clock shows ``at``.

        Both are seconds since the epoch. Clocks that differ by a minute or less count as equal.
        """
        with self._lock:
            heard = self._heard
        if heard is None:
            return at
        ahead = heard[0] + _uptime() - heard[1] - time.time()
        return at if abs(ahead) <= _SLACK else at + ahead


class ClockedTransport:
    """A transport that reads the time from its replies.

    Args:
        transport: sends the requests.
        clock: receives the times.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock

    def send(self, request: HttpRequest) -> HttpReply:
        """Send ``request``; see :class:`Transport`."""
        began = _uptime()
        reply = self._transport.send(request)
        self._clock.hear(reply.headers.get("Date"), began)
        return reply


def _uptime() -> float:
    """Return seconds by a clock that is never set, and that runs while the machine sleeps."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def _seconds(date: str | None) -> float | None:
    """Return a Date header's time in seconds since the epoch; None if it is not a date."""
    try:
        when = parsedate_to_datetime(date or "")
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        return when.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
