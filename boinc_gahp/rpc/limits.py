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
class Limits:
    """What one reply is given.

    Attributes:
        silence: seconds between two reads.
        until: ``time.monotonic()`` by which it must have ended; None for no end.
        whole: seconds from its first byte to its end; None for no end.
    """

    silence: float
    until: float | None = None
    whole: float | None = None


# A connection makes its response itself, in the thread that sent the request.
_current = threading.local()


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """Let ``limits`` hold for the replies to what this thread sends meanwhile."""
    _current.limits = limits
    try:
        yield
    finally:
        _current.limits = None


def timed_pools(
    patience: float, trust: Callable[[], ssl.SSLContext]
) -> dict[str, type[HTTPConnectionPool]]:
    """Return pools whose connections keep to :class:`Limits`, and trust what ``trust`` does.

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
    limits: Limits | None = getattr(_current, "limits", None)
    if limits is not None and limits.until is not None:
        # 0 would mean not to wait at all: an error of its own.
        patience = max(0.001, min(patience, limits.until - time.monotonic()))
    if connection.sock is not None:
        connection.sock.settimeout(patience)


class _TimedResponse(http.client.HTTPResponse):
    """A response that reads through :class:`_Timed`."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        limits: Limits | None = getattr(_current, "limits", None)
        if limits is not None:
            # BufferedReader has hold of the socket's file; what it has read ahead is nothing yet.
            self.fp = io.BufferedReader(_Timed(sock, self.fp.detach(), limits))


class _Timed(io.RawIOBase):
    """Reads from a socket's file, each time for no longer than is left."""

    def __init__(self, sock: socket.socket, file: Any, limits: Limits) -> None:
        super().__init__()
        self._sock = sock
        self._file = file
        self._limits = limits
        self._until = limits.until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        silence = self._limits.silence
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the reply did not end in the time there was for it")
            silence = min(silence, left)
        self._sock.settimeout(silence)
        count: int | None = self._file.readinto(buffer)
        if self._limits.whole is not None and self._until == self._limits.until:
            whole = time.monotonic() + self._limits.whole
            self._until = whole if self._until is None else min(whole, self._until)
        return count

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
