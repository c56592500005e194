"""A web server in front of a local project that speaks http and https on one port."""

import socket
import threading
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.helpers import certified

_TLS_BEGINS = b"\x16"
_BLOCK = 65536


@contextmanager
def both_ways(upstream, directory):
    """Yield the address without its scheme, such as ``//127.0.0.1:1234/``, and the bundle.

    Args:
        upstream: the project's URL.
        directory: where the certificate of the authority is written that has signed its own.
    """
    context, bundle = certified(directory, "127.0.0.1")
    parts = urlsplit(upstream)
    target = (str(parts.hostname), int(parts.port or 80))
    sockets = set()
    threads = []

    def start(target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        threads.append(thread)
        thread.start()

    def serve(client):
        with suppress(OSError):
            if client.recv(1, socket.MSG_PEEK) == _TLS_BEGINS:
                client = context.wrap_socket(client, server_side=True)
            server = socket.create_connection(target)
            sockets.update({client, server})
            start(pump, server, client)
            pump(client, server)

    def pump(source, sink):
        with suppress(OSError):
            while block := source.recv(_BLOCK):
                sink.sendall(block)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept():
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                sockets.add(client)
                start(serve, client)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        start(accept)
        try:
            yield f"//127.0.0.1:{listener.getsockname()[1]}{parts.path}", str(bundle)
        finally:
            # Sockets are closed last: a thread would write into what gets a closed one's number.
            for thread in threads:
                while thread.is_alive():
                    for each in [listener, *sockets]:
                        with suppress(OSError):
                            each.shutdown(socket.SHUT_RDWR)
                    thread.join(0.1)
            for each in sockets:
                each.close()
