"""The HTTP server's threads: waitress, which can start and stop within one process."""

from __future__ import annotations

import errno
import logging
import math
import socket
import threading
import time
from typing import TYPE_CHECKING

import waitress.server
from waitress import wasyncore

from boinc_gahp.localproject.server.addresses import HOST
from boinc_gahp.localproject.server.connections import (
    CONNECTIONS,
    Allowance,
    UnfinishedHeads,
    channel_class,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _typeshed.wsgi import WSGIApplication

    from boinc_gahp.localproject.server.connections import Allow, Channel

log = logging.getLogger("boinc_gahp.localproject")
# It warns about each request that waits for a thread, however briefly.
logging.getLogger("waitress.queue").setLevel(logging.ERROR)

_THREADS = 24
#: The limit for a body is decided when its head has arrived (``bodies.Allowance``).
_NO_LIMIT = 1 << 62
#: The most bytes of a request's head.
_MAX_HEAD = 32 << 10
#: Replies wait in memory, where they are made; waitress's own limit for that is
#: outbuf_high_watermark.
_MAX_REPLY = 1 << 30
#: A connection that has been silent for this many seconds is closed, even with half a request.
_IDLE = 120
#: Seconds that the head of a request may take.
_HEAD_TIMEOUT = 20.0
#: While answers are being made, more connections may exist than are accepted otherwise.
_ANSWERING = 100
#: Bytes read from a socket at a time.
_RECV = 1 << 18
_STOP_TIMEOUT = 10.0
_POLL = 1.0
_ADVICE = {
    errno.EADDRINUSE: "another program uses this port: give another one",
    errno.EACCES: "only root can use ports below 1024: give a higher one",
}


class WebServer:
    """One listening socket, one thread that does the I/O, and some that work.

    Work on a request begins when all of it has arrived, so an unfinished request blocks no other.

    Args:
        app: the application that answers.
        port: the port to listen on; 0 for any that is free.
        host: the address to listen on.
        spool: the directory for bodies being received.
        allow: decides how much of a request's body is accepted.
        head_timeout: seconds that the head of a request may take.
        clock: what counts them, as :func:`time.monotonic`.

    Raises:
        OSError: the port is not free, or the address is not one of this machine.
    """

    def __init__(
        self,
        app: WSGIApplication,
        port: int,
        host: str = HOST,
        *,
        spool: Path,
        allow: Allow = lambda _path, _headers: Allowance(),
        head_timeout: float = _HEAD_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # waitress would leave threads and sockets behind if it could not bind.
        listener = _bound(port, host)
        self._map: dict[int, object] = {}
        self._unfinished = UnfinishedHeads(head_timeout, clock)
        self._poll = min(_POLL, head_timeout)
        self._server = waitress.server.create_server(
            app,
            map=self._map,
            sockets=[listener],
            threads=_THREADS,
            recv_bytes=_RECV,
            max_request_header_size=_MAX_HEAD,
            max_request_body_size=_NO_LIMIT,
            outbuf_overflow=_MAX_REPLY,
            connection_limit=CONNECTIONS + _ANSWERING,
            channel_timeout=_IDLE,
            ident="boinc_gahp local project",
            clear_untrusted_proxy_headers=True,
        )
        self._server.channel_class = channel_class(self._unfinished, spool, allow)
        self.port: int = listener.getsockname()[1]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="localproject-web", daemon=True)

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def running(self) -> bool:
        """Whether the thread that does the I/O is alive."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Close all connections and end all threads."""
        self._stopping.set()
        if self._thread.is_alive():
            self._server.trigger.pull_trigger()
            self._thread.join(_STOP_TIMEOUT)
        # Connections first: a thread may be waiting for its client to read enough.
        for channel in self._channels():
            channel.handle_close()
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=_STOP_TIMEOUT)
        # The trigger last, and by this thread: the others write to it.
        wasyncore.close_all(self._map, ignore_all=True)

    def _loop(self) -> None:
        look = -math.inf
        while not self._stopping.is_set():
            wasyncore.loop(timeout=self._poll, use_poll=True, map=self._map, count=1)
            if time.monotonic() >= look:
                self._unfinished.end_late(self._channels())
                look = time.monotonic() + self._poll

    def _channels(self) -> list[Channel]:
        return list(self._server.active_channels.values())


def _bound(port: int, host: str) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        # An unknown host name has no number among these.
        advice = _ADVICE.get(error.errno or 0, "give an address of this machine")
        raise OSError(
            error.errno, f"cannot listen on {host}, port {port}: {error.strerror}: {advice}"
        ) from error
    return listener


def port_is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could now listen on a port of an address of this machine."""
    try:
        _bound(port, host).close()
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            return False
        raise
    return True
