"""The project's clock: what time it is there, also where the clock of this machine is wrong.

A few requests hold a time at which the project is to do something: when a batch expires, when a
file may be deleted. The project compares it with its own clock, and a submit node's may be an hour
off, or a day. So such times are sent as the project's clock will show them.

Its time is taken from the ``Date`` of its replies, which web servers send with each of them, a
ping's and an error page's too; ``server_time`` comes with query_batch2 alone, and the first time
to be sent, a new batch's lease, comes before any of those.
"""

from __future__ import annotations

import threading
import time
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boinc_gahp.rpc.transport import HttpReply, HttpRequest, Transport

#: Seconds by which clocks may differ without times being changed: they then are what was asked for.
_SLACK = 60.0
#: Of an exchange that took longer than this, in seconds, the Date tells too little: some servers
#: give the time at which the request came, others that of the reply.
_SLOW = 10.0
#: Seconds after which the project's time has to be asked for again.
_LASTS = 600.0


class Clock:
    """What is known of a project's clock; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The project's time, and the uptime when it was that; None: it tells none.
        self._heard: tuple[float, float] | None = None
        self._when: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether the project has lately told its time, or that it tells none."""
        when = self._when
        return when is not None and _uptime() - when < _LASTS

    def hear(self, date: str | None, began: float) -> None:
        """Take in the Date of a reply that has just begun.

        Args:
            date: the header's text, None if there is none.
            began: uptime in seconds, right before its request was sent.
        """
        now = _uptime()
        if now - began > _SLOW:
            return
        stamp = _seconds(date)
        with self._lock:
            self._when = now
            # A Date has whole seconds: half of one is lost on the average.
            self._heard = None if stamp is None else (stamp + 0.5, (began + now) / 2)

    def theirs(self, at: float) -> float:
        """Return what the project's clock will show when this machine's shows ``at``.

        Both are seconds since the epoch. Clocks that differ by a minute or less count as equal.
        """
        with self._lock:
            heard = self._heard
        if heard is None:
            return at
        ahead = heard[0] + _uptime() - heard[1] - time.time()
        return at if abs(ahead) <= _SLACK else at + ahead


class Watched:
    """A transport whose replies tell the time.

    Args:
        transport: sends the requests.
        clock: is told.
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
    """Return seconds by a clock that nobody sets, and that goes on while the machine sleeps."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def _seconds(date: str | None) -> float | None:
    """Return a Date header's time in seconds since the epoch; None if it is none."""
    try:
        when = parsedate_to_datetime(date or "")
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        return when.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
