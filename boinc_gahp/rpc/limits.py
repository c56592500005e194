"""Time limits that hold for whatever a server does.

A read time-out counts the silence between two bytes only: a server that sends a byte every second
would hold a request for ever, in its headers as well as in its body. So every single wait is given
the time that is left for the whole.

That takes subclasses of urllib3's connections: neither urllib3 nor requests gives access to the
socket while a request is sent and the headers are read. What they offer is not enough:

* ``urllib3.Timeout(total=...)`` bounds each read, not all of them together.
* Each block of an upload is given the time-out for connecting.
* ``HTTPResponse.shutdown()``, which a timer could call, exists once the headers are there. A body
  without a length then ends as if it were whole, and over TLS the rest of it comes encrypted.
"""

from __future__ import annotations

import http.client
import io
import math
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """What one request and its reply are given.

    Attributes:
        silence: seconds between two reads, and for each block that is sent.
        until: ``time.monotonic()`` by which the reply must have ended.
        whole: seconds from the reply's first byte to its end.
        rate: the fewest bytes per second of the reply, once it has begun; 0 for any.
        rate_span: the seconds of waiting for bytes over which the rate is looked at.
    """

    silence: float
    until: float = math.inf
    whole: float = math.inf
    rate: float = 0.0
    rate_span: float = 60.0

    def next_wait(self) -> float:
        """Return the seconds that the next read or block may take.

        Raises:
            TimeoutError: there are none left.
        """
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time for the request and its reply is over")
        return min(self.silence, left)


#: A line that a server sends, such as the length of a chunk, is no longer than http.client's.
_LONGEST_LINE = 65537

# urllib3 passes nothing of ours on to its connections, but they work in the thread that sends.
_current: ContextVar[TimeLimits] = ContextVar("limits")


@contextmanager
def limited(limits: TimeLimits) -> Iterator[None]:
    """Let ``limits`` hold for what this thread sends meanwhile, and for the replies to it."""
    token = _current.set(limits)
    try:
        yield
    finally:
        _current.reset(token)


class _TimedResponse(http.client.HTTPResponse):
    """A response that is read within the limits."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        # The file that is replaced has read nothing yet.
        self.fp = _Lines(_TimedReader(sock, self.fp.detach(), _current.get()))


class _TimedConnection(HTTPConnection):
    """A connection on which requests are sent within the limits, too."""

    response_class = _TimedResponse

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        # urllib3 has set the time-out for connecting: a server that pauses during an upload for
        # longer than that is there all the same.
        self.sock.settimeout(_current.get().next_wait())
        super().send(data)


class _TimedTlsConnection(_TimedConnection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TimedTlsConnection


#: Whose requests have to be sent where :func:`limited` holds.
TIMED_POOLS: dict[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _TlsPool}


class _Lines(io.BufferedReader):
    """A reader whose lines end: urllib3 would read one of any length."""

    def readline(self, size: int | None = -1) -> bytes:
        most = _LONGEST_LINE if size is None or size < 0 else min(size, _LONGEST_LINE)
        return super().readline(most)


class _TimedReader(io.RawIOBase):
    """Reads from a socket's file, each time for no longer than is left.

    For the rate, only the time of waiting counts: the caller may take as long as it likes between
    two reads.
    """

    def __init__(self, sock: socket.socket, file: Any, limits: TimeLimits) -> None:
        super().__init__()
        self._sock = sock
        self._file = file
        self._limits = limits
        self._begun = False
        # In this span.
        self._waited = 0.0
        self._came = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        wait, rest = self._limits.next_wait(), self._rest_of_span()
        asked = time.monotonic()
        self._sock.settimeout(min(wait, rest))
        count: int | None = None
        try:
            count = self._file.readinto(buffer)
        except TimeoutError:
            if wait <= rest:
                raise
            # _count() raises: not here, where the error would carry this one as its context.
        now = time.monotonic()
        if not self._begun:
            self._begun = True
            until = min(self._limits.until, now + self._limits.whole)
            self._limits = replace(self._limits, until=until)
        else:
            self._count(count, now - asked)
        return count

    def _rest_of_span(self) -> float:
        """Return the seconds in which more has to come; infinite where enough has come."""
        if not self._begun or self._has_enough():
            return math.inf
        return self._limits.rate_span - self._waited

    def _has_enough(self) -> bool:
        return self._came >= self._limits.rate * self._limits.rate_span

    def _count(self, count: int | None, waited: float) -> None:
        """Count what came; None if nothing did in the rest of the span."""
        self._came += count or 0
        self._waited += waited
        if count is not None and self._waited < self._limits.rate_span:
            return
        if count != 0 and not self._has_enough():
            raise TimeoutError(
                f"fewer than {self._limits.rate:,.0f} bytes a second (output_rate) came for "
                f"{self._limits.rate_span:g} s"
            )
        self._waited, self._came = 0.0, 0

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
