"""Time limits that hold whatever a server does.

A read time-out only limits the silence between two bytes. A server that sends a byte every second
could hold a request for ever, in its headers as well as in its body. So every single wait is
limited to the time left for the whole.

This takes subclasses of urllib3's connections, because neither urllib3 nor requests gives access to
the socket while a request is sent and the headers are read. What they offer is not enough:

* ``urllib3.Timeout(total=...)`` limits each read, not all of them together.
* Each block of an upload has the time-out for connecting.
* ``HTTPResponse.shutdown()``, which a timer could call, exists only after the headers were read. A
  body without a length then looks complete, and over TLS the rest of it is still encrypted.
"""

from __future__ import annotations

import http.client
import io
import math
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """The limits of one request and its reply.

    Attributes:
        silence: seconds between two reads, and for each block that is sent.
        until: the reply must have ended by this time of the clock.
        whole: seconds from the reply's first byte to its end.
        rate: the lowest allowed bytes per second of a reply that has begun; 0 for any.
        rate_span: seconds of waiting for bytes over which the rate is measured.
        clock: seconds, as :func:`time.monotonic`.
    """

    silence: float
    until: float = math.inf
    whole: float = math.inf
    rate: float = 0.0
    rate_span: float = 60.0
    clock: Callable[[], float] = time.monotonic

    def next_wait(self, until: float = math.inf) -> float:
        """Return how many seconds the next read or block may take, if all may last ``until``.

        Raises:
            TimeoutError: the time is over.
        """
        left = min(self.until, until) - self.clock()
        if left <= 0:
            raise TimeoutError("the time limit for the request and its reply was reached")
        return min(self.silence, left)


#: The limit of http.client for a line from a server, such as the length of a chunk.
_LONGEST_LINE = 65537

# urllib3 passes no values of ours to its connections, but they run in the sending thread.
_current: ContextVar[TimeLimits] = ContextVar("limits")


@contextmanager
def limited(limits: TimeLimits) -> Iterator[None]:
    """Apply ``limits`` to what this thread sends meanwhile, and to the replies."""
    token = _current.set(limits)
    try:
        yield
    finally:
        _current.reset(token)


class _TimedResponse(http.client.HTTPResponse):
    """A response that is read within the limits."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        # Nothing was read yet from the file that is replaced.
        self.fp = _Lines(_TimedReader(sock, self.fp.detach(), _current.get()))


class _TimedConnection(HTTPConnection):
    """A connection that sends requests within the limits, too."""

    response_class = _TimedResponse

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            # urllib3 would set the time-out for connecting, but a server may pause for longer
            # during an upload.
            self.timeout = _current.get().next_wait()
        super().request(*args, **kwargs)

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        wait = _current.get().next_wait()
        if self.sock.gettimeout() != wait:  # to set it is a system call
            self.sock.settimeout(wait)
        super().send(data)


class _TimedTlsConnection(_TimedConnection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _TimedConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TimedTlsConnection


#: Their requests must be sent inside :func:`limited`.
TIMED_POOLS: dict[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _TlsPool}


class _Lines(io.BufferedReader):
    """A reader that limits the length of lines, as urllib3 does not."""

    def readline(self, size: int | None = -1) -> bytes:
        most = _LONGEST_LINE if size is None or size < 0 else min(size, _LONGEST_LINE)
        return super().readline(most)


class _TimedReader(io.RawIOBase):
    """Reads from a socket's file; each read may take only the time left.

    The rate counts only the time spent waiting: the caller may pause between two reads for as long
    as it likes.
    """

    def __init__(self, sock: socket.socket, file: Any, limits: TimeLimits) -> None:
        super().__init__()
        self._sock = sock
        self._file = file
        self._limits = limits
        self._begun = False
        self._wait: float | None = None
        self._until = math.inf
        self._wanted = limits.rate * limits.rate_span
        # In the current span.
        self._waited = 0.0
        self._came = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        wait, rest = self._limits.next_wait(self._until), self._rest_of_span()
        begun = self._limits.clock()
        if self._wait != min(wait, rest):  # nobody else sets it while there is a reply to read
            self._wait = min(wait, rest)
            self._sock.settimeout(self._wait)
        count: int | None = None
        try:
            count = self._file.readinto(buffer)
        except TimeoutError:
            if wait <= rest:
                raise
            # _count() raises. It is called outside, where its error does not get this one as its
            # context.
        now = self._limits.clock()
        if not self._begun:
            self._begun = True
            self._until = now + self._limits.whole
        elif self._wanted:
            self._count(count, now - begun)
        return count

    def _rest_of_span(self) -> float:
        """Return the seconds until more must have arrived; infinite if enough has."""
        if not self._begun or self._has_enough():
            return math.inf
        return self._limits.rate_span - self._waited

    def _has_enough(self) -> bool:
        return self._came >= self._wanted

    def _count(self, count: int | None, waited: float) -> None:
        """Count received bytes; None if nothing arrived in the rest of the span."""
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
