"""A web server in front of a local project that speaks http and https on one port."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trustme

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TLS_BEGINS = b"\x16"
_BLOCK = 65536


@contextmanager
def both_ways(upstream: str, authority: Path) -> Iterator[str]:
    """Yield the address without its scheme, such as ``//127.0.0.1:1234/``.

    Args:
        upstream: the project's URL.
        authority: where the certificate of the authority is written that has signed its own.
    """
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(str(authority))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert("127.0.0.1").configure_cert(context)
    parts = urlsplit(upstream)
    target = (str(parts.hostname), int(parts.port or 80))
    sockets: set[socket.socket] = set()

    def serve(client: socket.socket) -> None:
        with suppress(OSError):
            if client.recv(1, socket.MSG_PEEK) == _TLS_BEGINS:
                client = context.wrap_socket(client, server_side=True)
            server = socket.create_connection(target)
            sockets.update({client, server})
            threading.Thread(target=pump, args=(server, client), daemon=True).start()
            pump(client, server)

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while block := source.recv(_BLOCK):
                sink.sendall(block)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                sockets.add(client)
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"//127.0.0.1:{listener.getsockname()[1]}{parts.path}"
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in list(sockets):
                each.close()
