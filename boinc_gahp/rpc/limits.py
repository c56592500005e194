"""Time limits that hold for whatever a server does.

A read time-out counts the silence between two bytes only: a server that sends a byte every second
would hold a request for ever, in its headers as well as in its body. So every single read is given
the time that is left for the whole.
"""

from __future__ import annotations

import http.client
import io
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """What one reply is given.

    Attributes:
        silence: seconds between two reads.
        until: ``time.monotonic()`` by which it must have ended; None for no end.
        whole: seconds from its first byte to its end; None for no end.
        rate: the fewest bytes per second, once it has begun; 0 for any.
        rate_span: the seconds of waiting for bytes over which the rate is looked at.
    """

    silence: float
    until: float | None = None
    whole: float | None = None
    rate: float = 0.0
    rate_span: float = 60.0


#: A line that a server sends, such as the length of a chunk, is no longer than http.client's.
_LONGEST_LINE = 65537

# A connection makes its response itself, in the thread that sent the request.
_current = threading.local()


@contextmanager
def limited(limits: ReplyLimits) -> Iterator[None]:
    """Let ``limits`` hold for the replies to what this thread sends meanwhile."""
    _current.limits = limits
    try:
        yield
    finally:
        _current.limits = None


def timed_pools(
    patience: float, trust: Callable[[], ssl.SSLContext]
) -> dict[str, type[HTTPConnectionPool]]:
    """Return pools whose connections keep to :class:`ReplyLimits`, and trust what ``trust`` does.

    While a request is sent they wait ``patience`` seconds for each block, if so much is left for
    the whole, and not only the short time for connecting: a server that takes a breath during an
    upload is there all the same.
    """

    class Plain(HTTPConnection):
        response_class = _TimedResponse

        def connect(self) -> None:
            super().connect()
            _be_patient(self, patience)

        def send(self, data: Any) -> None:
            _be_patient(self, patience)
            super().send(data)

    class Secure(HTTPSConnection):
        response_class = _TimedResponse

        def connect(self) -> None:
            # requests sets the file of certifi where it is told no other.
            self.ca_certs = self.ca_cert_dir = self.ca_cert_data = None
            self.ssl_context = trust()
            super().connect()
            _be_patient(self, patience)

        def send(self, data: Any) -> None:
            _be_patient(self, patience)
            super().send(data)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _be_patient(connection: HTTPConnection, patience: float) -> None:
    """Forget the time-out of the reply before, or of the connecting."""
    limits: ReplyLimits | None = getattr(_current, "limits", None)
    if limits is not None and limits.until is not None:
        # 0 would mean not to wait at all: an error of its own.
        patience = max(0.001, min(patience, limits.until - time.monotonic()))
    if connection.sock is not None:
        connection.sock.settimeout(patience)


class _TimedResponse(http.client.HTTPResponse):
    """A response that reads through :class:`_Timed`."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        limits: ReplyLimits | None = getattr(_current, "limits", None)
        if limits is not None:
            # BufferedReader has hold of the socket's file; what it has read ahead is nothing yet.
            self.fp = _Lines(_Timed(sock, self.fp.detach(), limits))


class _Lines(io.BufferedReader):
    """A reader whose lines end: urllib3 would read one of any length."""

    def readline(self, size: int | None = -1) -> bytes:
        most = _LONGEST_LINE if size is None or size < 0 else min(size, _LONGEST_LINE)
        return super().readline(most)


class _Timed(io.RawIOBase):
    """Reads from a socket's file, each time for no longer than is left."""

    def __init__(self, sock: socket.socket, file: Any, limits: ReplyLimits) -> None:
        super().__init__()
        self._sock = sock
        self._file = file
        self._limits = limits
        self._until = limits.until
        self._begun = False
        self._waited = 0.0
        self._came = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        silence = self._limits.silence
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the reply did not end in the time there was for it")
            silence = min(silence, left)
        count = self._wait(buffer, silence)
        if self._limits.whole is not None and self._until == self._limits.until:
            whole = time.monotonic() + self._limits.whole
            self._until = whole if self._until is None else min(whole, self._until)
        return count

    def _wait(self, buffer: Any, silence: float) -> int | None:
        """Read what comes, for ``silence`` seconds, or less where it comes too slowly.

        Only the time of waiting counts: whoever reads may take as long as it likes.
        """
        limits = self._limits
        slow = self._begun and self._came < limits.rate * limits.rate_span
        left = max(0.001, limits.rate_span - self._waited)
        begun = time.monotonic()
        self._sock.settimeout(min(silence, left) if slow else silence)
        count: int | None = 0
        stopped = False
        try:
            count = self._file.readinto(buffer)
        except TimeoutError:
            if not slow or left >= silence:
                raise
            stopped = True
        if stopped:  # here, so that the error is told without what it came from
            raise self._too_slow()
        self._begun = True
        self._came += count or 0
        self._waited += time.monotonic() - begun
        if self._waited >= limits.rate_span:
            if count and slow and self._came < limits.rate * limits.rate_span:
                raise self._too_slow()
            self._waited, self._came = 0.0, 0
        return count

    def _too_slow(self) -> TimeoutError:
        return TimeoutError(
            f"fewer than {self._limits.rate:,.0f} bytes a second (output_rate) came for "
            f"{self._limits.rate_span:g} s"
        )

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
