"""A web server that answers as it is told, well or badly, over plain sockets.

::

    with Scripted() as server:
        server.answers += [reset(), ok(PONG)]
        Project(server.url, AUTHENTICATOR).ping()
        assert [request.connection for request in server.requests] == [0, 1]
"""

import contextlib
import gzip
import re
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions

AUTHENTICATOR = "5ecre7c0ffee5ecre7c0ffee5ecre7c0"
PONG = b'<?xml version="1.0" encoding="ISO-8859-1" ?>\n<ping>\n<success>1</success>\n</ping>\n'


@dataclass
class Request:
    """A request as it came: its connection counts from 0."""

    connection: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def xml(self):
        match = re.search(rb'name="request"\r\n\r\n(.*?)\r\n--', self.body, re.DOTALL)
        return match[1] if match else b""

    @property
    def rpc(self):
        match = re.match(rb"<([a-z_0-9]+)", self.xml)
        return match[1].decode() if match else self.path


@dataclass
class Answer:
    """What an answer is given to work with; returns whether the connection stays open."""

    connection: socket.socket
    stop: threading.Event


Play = Callable[[Answer], bool]


@dataclass
class Scripted:
    """Answers in order; the last answer stands for all later requests."""

    context: object = None
    answers: deque[Play] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)

    @property
    def url(self):
        scheme = "https" if self.context else "http"
        return f"{scheme}://localhost:{self.port}/test/"

    @property
    def port(self):
        return int(self._listener.getsockname()[1])

    @property
    def host(self):
        return f"localhost:{self.port}"

    def client(self, **options):
        """Return a client that asks it, each question once."""
        known = ClientOptions(**{"retry_total": 0, **options})
        return WebRpcs(self.url, AUTHENTICATOR, options=known)

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._start(self._accept)
        return self

    def __exit__(self, *exc_info):
        self.stop.set()
        for sock in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _start(self, target, *args):
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        count = 0
        while not self.stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._start(self._serve, connection, count)
            count += 1

    def _serve(self, plain, number):
        connection = plain
        try:
            if self.context is not None:
                connection = self.context.wrap_socket(plain, server_side=True)
                self._open.append(connection)
            with connection.makefile("rb") as stream:
                while (request := _read(stream, number)) is not None:
                    self.requests.append(request)
                    play = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
                    if not play(Answer(connection, self.stop)):
                        break
        except ValueError:
            connection.sendall(http(400))
        except OSError:
            pass
        finally:
            connection.close()


def _read(stream, number):
    readline, read = stream.readline, stream.read
    line = readline().decode()
    if not line.strip():
        return None
    method, path, _ = line.split()
    headers = {}
    while (header := readline().decode().strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    return Request(number, method, path, headers, read(int(headers.get("content-length", 0))))


# -- answers


def http(status, body=b"", **headers):
    shown = {"Content-Type": "text/xml", "Content-Length": str(len(body))}
    shown |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Some Reason"]
    lines += [f"{name}: {value}" for name, value in shown.items() if value != ""]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def raw(data, *, stay=False):
    def play(answer):
        answer.connection.sendall(data)
        return stay

    return play


def ok(body=PONG, **headers):
    return raw(http(200, body, **headers), stay=True)


def status(number, body=b"", **headers):
    return raw(http(number, body, **headers), stay=True)


def compressed(body=PONG, cut=0):
    data = gzip.compress(body)
    data = data[: len(data) - cut]
    return raw(http(200, data, Content_Encoding="gzip"), stay=True)


def short(body=PONG, missing=20):
    """Announce more bytes than come."""
    return raw(http(200, body[:-missing], Content_Length=str(len(body))))


def chunked(body=PONG, *, whole=True):
    head = http(200, b"", Content_Length="", Transfer_Encoding="chunked")
    data = b"%x\r\n%s\r\n" % (len(body), body) + (b"0\r\n\r\n" if whole else b"40\r\nabc")
    return raw(head + data, stay=whole)


def goodbye():
    """Close the connection instead of answering."""
    return lambda _: False


def then_closed(play):
    """Answer as if the connection stayed open, and close it."""

    def closing(answer):
        play(answer)
        return False

    return closing


def reset():
    def play(answer):
        linger = struct.pack("ii", 1, 0)
        answer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        return False

    return play


def hang(data=b""):
    """Send ``data`` and nothing more, until the server is stopped."""

    def play(answer):
        answer.connection.sendall(data)
        answer.stop.wait()
        return False

    return play


def drip(data, pause=0.02):
    """Send ``data`` one byte at a time."""

    def play(answer):
        for byte in data:
            answer.connection.sendall(bytes([byte]))
            if answer.stop.wait(pause):
                return False
        return True

    return play


def tunnel(port):
    """Do as a proxy does that is asked to CONNECT, whatever the place asked for."""

    def play(answer):
        with socket.create_connection(("127.0.0.1", port)) as there:
            answer.connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            ends = {answer.connection: there, there: answer.connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return False
                    ends[end].sendall(data)

    return play
