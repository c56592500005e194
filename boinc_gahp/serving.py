"""An HTTP server that can start and stop within one process: waitress, and its threads."""

from __future__ import annotations

import errno
import logging
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import waitress.server
from waitress import wasyncore

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# It warns about each request that waits for a thread, however briefly.
logging.getLogger("waitress.queue").setLevel(logging.ERROR)

#: Only this machine reaches it.
HOST = "127.0.0.1"
#: The most bytes of a request's body, which waits in a temporary file until all of it is there.
_MAX_BODY = 2 << 30
#: The most bytes of a request's head.
_MAX_HEAD = 32 << 10
#: Replies wait in memory, where they are made; waitress's own limit for that is
#: outbuf_high_watermark.
_MAX_REPLY = 1 << 30
#: A connection that has been silent for this many seconds is closed, even with half a request.
_IDLE = 120
#: They fit into 1,024 descriptors, with a file for each and the project's own open files.
_CONNECTIONS = 400
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
        threads: how many requests are worked on at a time.
        name: what answers say it is.

    Raises:
        OSError: the port is not free, or the address is not one of this machine.
    """

    def __init__(
        self,
        app: WSGIApplication,
        port: int,
        host: str = HOST,
        *,
        threads: int = 8,
        name: str = "boinc_gahp",
    ) -> None:
        # waitress would leave threads and sockets behind if it could not bind.
        listener = _bound(port, host)
        self._map: dict[int, object] = {}
        self._server = waitress.server.create_server(
            app,
            map=self._map,
            sockets=[listener],
            threads=threads,
            recv_bytes=_RECV,
            max_request_header_size=_MAX_HEAD,
            max_request_body_size=_MAX_BODY,
            outbuf_overflow=_MAX_REPLY,
            connection_limit=_CONNECTIONS,
            channel_timeout=_IDLE,
            ident=name,
            clear_untrusted_proxy_headers=True,
        )
        self.port: int = listener.getsockname()[1]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="web", daemon=True)

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
        for channel in list(self._server.active_channels.values()):
            channel.handle_close()
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=_STOP_TIMEOUT)
        # The trigger last, and by this thread: the others write to it.
        wasyncore.close_all(self._map, ignore_all=True)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            wasyncore.loop(timeout=_POLL, use_poll=True, map=self._map, count=1)


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


def hostname(host: str) -> str:
    """Return the name in a request's ``Host``; "" if it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def port_is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could now listen on a port of an address of this machine."""
    try:
        _bound(port, host).close()
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            return False
        raise
    return True
