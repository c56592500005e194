"""A proxy between a client of the web RPCs and a project, which goes wrong on command.

::

    with FaultProxy(project.url) as proxy:
        proxy.fail("submit_batch", lose_reply())
        client = Project(proxy.url, authenticator)
        ...
        assert proxy.count("submit_batch") == 2

The RPC of a request is the root element of its form field ``request``, the ``cmd`` of a
``get_output.php`` request, and otherwise method and path (``GET /test/``).
"""

import contextlib
import http.client
import re
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote_plus, urlsplit

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "expect", "te", "upgrade"}
)
_ROOT = re.compile(r"<([A-Za-z_][\w.-]*)[\s/>]")
#: A request's RPC stands in its first bytes; so much of a body is looked at.
_LOOK_AT = 65536

HTML_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Welcome</title></head>\n"
    b"<body><p>This is a page for people, with <br> and &nbsp; in it.</body></html>\n"
)
PHP_WARNING = (
    b"<br />\n<b>Warning</b>:  Undefined variable $x in "
    b"<b>/home/boinc/html/inc/submit.inc</b> on line <b>12</b><br />\n"
)


@dataclass
class Reply:
    """A whole HTTP reply; ``headers`` without length and connection, which sending adds."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def head(self, length=None):
        """Return status line and headers, with a Content-Length of ``length`` or the true one."""
        lines = [f"HTTP/1.1 {self.status} {http.client.responses.get(self.status, 'Odd')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines.append(f"Content-Length: {len(self.body) if length is None else length}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


class Exchange:
    """One request on its way: what a fault works with."""

    def __init__(self, proxy, client, stream):
        self._proxy = proxy
        self.client = client
        self._stream = stream
        self.method = self.target = self.rpc = ""
        self.headers = []
        self.body = bytearray()
        self._rest = iter(())
        #: Set when the proxy closes: faults wait on it instead of sleeping.
        self.closing = proxy.closing

    def begin(self):
        """Read the head and enough of the body to know the RPC; False at end of connection."""
        if not (line := self._stream.readline()):
            return False
        self.method, self.target, _ = line.decode("latin-1").split(" ", 2)
        # A client that takes this for its proxy names the whole address.
        self.target = urlsplit(self.target)._replace(scheme="", netloc="").geturl()
        while (line := self._stream.readline().rstrip(b"\r\n")) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            self.headers.append((name, value.strip()))
        self._rest = self._chunks()
        while not (rpc := self._name()) and len(self.body) < _LOOK_AT:
            if not (chunk := next(self._rest, b"")):
                break
            self.body += chunk
        self.rpc = rpc or f"{self.method} {urlsplit(self.target).path}"
        return True

    def header(self, name):
        """Return a header's value, or nothing."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def length(self):
        """The body's length as the client gave it, in bytes; 0 where it gave none."""
        return int(self.header("content-length") or 0)

    def _name(self):
        url = urlsplit(self.target)
        if cmd := parse_qs(url.query).get("cmd"):
            return cmd[0]
        if self.method != "POST":
            return url.path.rpartition("/")[2].removesuffix(".php")
        text = bytes(self.body[:_LOOK_AT]).decode("utf-8", "replace")
        if "urlencoded" in self.header("content-type"):
            _, found, value = f"&{text}".partition("&request=")
            text = unquote_plus(value) if found else ""
        else:
            _, _, text = text.partition('name="request"')
        root = _ROOT.search(text)
        return root[1] if root else ""

    def _chunks(self):
        left = self.length
        while left and (chunk := self._stream.read1(min(left, 16384))):
            left -= len(chunk)
            yield chunk

    def read_body(self, share=1.0):
        """Read the request's body until ``share`` of it is here."""
        enough = self.length * share if share < 1 else float("inf")
        while len(self.body) < enough and (chunk := next(self._rest, b"")):
            self.body += chunk

    def forward(self, *, plain=False):
        """Have the project carry the request out; ``plain``: with a reply that is not gzipped."""
        self.read_body()
        with self._proxy.connect_upstream() as upstream:
            upstream.putrequest(self.method, self.target, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers:
                low = name.lower()
                if low not in _HOP_BY_HOP and not (plain and low == "accept-encoding"):
                    upstream.putheader(name, value)
            if self.method != "GET" or self.body:
                upstream.putheader("Content-Length", str(len(self.body)))
            upstream.endheaders(bytes(self.body))
            answer = upstream.getresponse()
            headers = [(k, v) for k, v in answer.getheaders() if k.lower() not in _HOP_BY_HOP]
            return Reply(answer.status, headers, answer.read())

    def send(self, reply, *, length=None):
        """Send the client a reply, with a Content-Length of ``length`` bytes or the true one."""
        self.client.sendall(reply.head(length) + reply.body)


#: Deals with a request; returns whether the client's connection may be used again.
Fault = Callable[[Exchange], bool]


def _instead(change, *, forward):
    def run(exchange):
        reply = Reply(200, [("Content-Type", "text/xml; charset=UTF-8")], b"")
        if forward:
            reply = exchange.forward(plain=True)
        else:
            exchange.read_body()
        exchange.send(change(reply))
        return True

    return run


def lose_reply():
    """Have the project do it, then close the client's connection without an answer."""

    def run(exchange):
        exchange.forward()
        return False

    return run


def lose_request():
    """Take the request, never forward it, close the client's connection without an answer."""

    def run(exchange):
        exchange.read_body()
        return False

    return run


def status(code=500, *, carried_out=False, text=b""):
    """Answer with an HTTP status; ``carried_out``: after the project did what was asked."""
    headers = [("Content-Type", "text/html")]
    return _instead(lambda _: Reply(code, headers, text), forward=carried_out)


def html(*, carried_out=False):
    """Answer with an HTML page and status 200."""
    headers = [("Content-Type", "text/html; charset=UTF-8")]
    return _instead(lambda _: Reply(200, headers, HTML_PAGE), forward=carried_out)


def body(contents, *, carried_out=False):
    """Answer with a body of the test's own, as text/xml with status 200."""
    headers = [("Content-Type", "text/xml; charset=UTF-8")]
    return _instead(lambda _: Reply(200, headers, contents), forward=carried_out)


def php_warnings(*, before=True, inside=True, after=True):
    """Put PHP warnings around and inside the real reply, as a project does with display_errors."""

    def change(reply):
        start = re.match(rb"(\s*<\?xml[^>]*\?>\n?)?(\s*<[A-Za-z_][\w.-]*>\n?)?", reply.body)
        prolog, root = start.groups(b"")
        rest = reply.body[start.end() :]
        first, second, last = (PHP_WARNING * each for each in (before, inside, after))
        reply.body = prolog + first + root + second + rest + last
        return reply

    return _instead(change, forward=True)


def cut(share=0.5, *, honest=False):
    """Send the first ``share`` of the reply's body.

    ``honest``: with the Content-Length of what is sent, as when PHP dies half way; otherwise with
    that of the whole, as when the connection breaks.
    """

    def run(exchange):
        reply = exchange.forward(plain=True)
        whole = len(reply.body)
        reply.body = reply.body[: int(whole * share)]
        exchange.send(reply, length=None if honest else whole)
        return honest

    return run


def drip(pause=0.001, pieces=None):
    """Send the reply byte by byte, or in so many pieces, with ``pause`` seconds before each."""

    def run(exchange):
        reply = exchange.forward(plain=True)
        data = reply.head() + reply.body
        size = 1 if pieces is None else len(data) // pieces + 1
        for start in range(0, len(data), size):
            if exchange.closing.wait(pause):
                return False
            exchange.client.sendall(data[start : start + size])
        return True

    return run


def reset(share=0.0):
    """Reset the connection (RST) when ``share`` of the request's body was read."""

    def run(exchange):
        exchange.read_body(share)
        # Lingering for no time makes close() send RST instead of FIN.
        exchange.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    return run


def delay(seconds):
    """Have the project do it, and answer that much later."""

    def run(exchange):
        reply = exchange.forward()
        if exchange.closing.wait(seconds):
            return False
        exchange.send(reply)
        return True

    return run


class Hang:
    """No answer until :meth:`release`; ``reached`` is set when a request has come to hang."""

    def __init__(self, *, carried_out):
        self.reached = threading.Event()
        self._released = threading.Event()
        self._carried_out = carried_out

    def release(self):
        """Let all requests that hang here go on, and later ones pass."""
        self._released.set()

    def __call__(self, exchange):
        """Wait for release, or for the proxy's end."""
        reply = exchange.forward() if self._carried_out else None
        exchange.read_body()
        self.reached.set()
        while not self._released.wait(0.01):
            if exchange.closing.is_set():
                return False
        exchange.send(reply or exchange.forward())
        return True


def hang(*, carried_out=False):
    """Give no answer until the fault's ``release()``.

    ``carried_out``: the project has done it by then; otherwise the project gets it on release.
    """
    return Hang(carried_out=carried_out)


@dataclass
class _Rule:
    rpc: str
    fault: Fault
    skip: int
    times: float


class FaultProxy:
    """The proxy: a context manager, listening on 127.0.0.1 with a port of its own.

    Attributes:
        url: what to give the client: the project's URL with the proxy's host and port.
        seen: the RPC of every request, in the order of their arrival.
        choose: asked for the fault of each request for which :meth:`fail` has none.
    """

    def __init__(self, upstream_url):
        self._upstream = urlsplit(upstream_url)
        self.seen = []
        self.closing = threading.Event()
        self.choose = lambda _: None
        self._rules = []
        self._lock = threading.Lock()
        self._sockets = set()
        self._threads = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        host, port = self._listener.getsockname()
        self.url = self._upstream._replace(netloc=f"{host}:{port}").geturl()

    def fail(self, rpc, fault, *, times=1, skip=0):
        """Let ``fault`` happen to requests of an RPC (``*``: of any).

        ``skip`` requests of it pass first, then ``times`` fail (None: all). Of several calls for
        an RPC, the next takes its turn when the one before is used up.
        """
        with self._lock:
            self._rules.append(_Rule(rpc, fault, skip, float("inf") if times is None else times))

    def heal(self):
        """Forget all faults; those under way go on."""
        with self._lock:
            self._rules.clear()

    def count(self, rpc):
        """Return how many requests of an RPC have arrived."""
        with self._lock:
            return self.seen.count(rpc)

    def __enter__(self):
        self._start(self._accept)
        return self

    def __exit__(self, *_exc):
        self.closing.set()
        with self._lock:
            sockets = [self._listener, *self._sockets]
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), f"{thread.name} did not stop"

    def _start(self, target, *args):
        thread = threading.Thread(target=target, args=args, name="fault proxy", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while not self.closing.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._keep(client):
                self._start(self._serve, client)

    def _keep(self, connection):
        """Note a socket for the end; when that has come already, close it and return False."""
        with self._lock:
            if not self.closing.is_set():
                self._sockets.add(connection)
                return True
        connection.close()
        return False

    def _drop(self, connection):
        with self._lock:
            self._sockets.discard(connection)
        connection.close()

    def _serve(self, client):
        # A client may go away at any time, and the proxy's end shuts sockets down under us.
        with contextlib.suppress(OSError, http.client.HTTPException), client.makefile("rb") as file:
            exchange = Exchange(self, client, file)
            while exchange.begin() and self._answer(exchange):
                exchange = Exchange(self, client, file)
        self._drop(client)

    def _answer(self, exchange):
        if fault := self._turn(exchange.rpc) or self.choose(exchange):
            return fault(exchange)
        exchange.send(exchange.forward())
        return True

    def _turn(self, rpc):
        with self._lock:
            self.seen.append(rpc)
            for rule in self._rules:
                if rule.rpc not in {rpc, "*"} or rule.times < 1:
                    continue
                if rule.skip:
                    rule.skip -= 1
                    return None
                rule.times -= 1
                return rule.fault
        return None

    @contextlib.contextmanager
    def connect_upstream(self):
        """Return a connection to the project, closed afterwards and at the proxy's end."""
        assert self._upstream.hostname
        connection = http.client.HTTPConnection(self._upstream.hostname, self._upstream.port)
        connection.connect()
        if not self._keep(connection.sock):
            raise ConnectionAbortedError("the proxy is closing")
        upstream = connection.sock
        try:
            yield connection
        finally:
            connection.close()
            self._drop(upstream)
