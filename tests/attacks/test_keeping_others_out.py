"""An attacker wants nobody else to get through to the local project, or its disk to be full.

Everybody comes from 127.0.0.1 here: the attacker, programs that ask RPCs, and a user's browser.
"""

import re
import resource
import socket
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from boinc_gahp.localproject.php import STOCK, Php
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.server.application import body_allowance, make_app
from boinc_gahp.localproject.server.connections import CONNECTIONS
from boinc_gahp.localproject.server.server import WebServer
from tests.helpers import wait_for
from tests.localproject.visitor import Visitor

#: More than the server has connections for.
MANY = 1050
#: This process's open files.
FILES = Path("/proc/self/fd")
RPC = b"POST /test/submit_rpc_handler.php HTTP/1.1\r\nHost: localhost\r\n"
PAGE = b"POST /test/batches/1 HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /test/nosuch HTTP/1.1\r\nHost: localhost\r\n\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture
def project(tmp_path):
    with _descriptors(), LocalProject(tmp_path / "p", hosts=0) as project:
        yield project


@contextmanager
def _descriptors():
    """Have room for both ends of all connections."""
    before = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MANY if hard == resource.RLIM_INFINITY else min(4 * MANY, hard)
    if wanted < 2 * MANY:
        pytest.skip(f"a process may have {hard} files open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def _connect(url, sent=b""):
    at = urlsplit(url)
    connection = socket.create_connection((at.hostname or "", at.port or 0), timeout=30)
    # What is closed by now may not take it.
    with suppress(OSError):
        connection.sendall(sent)
    return connection


def _ping(session, project):
    answer = session.post(
        project.url + "submit_rpc_handler.php", data={"request": "<ping> </ping>"}, timeout=30
    )
    return answer.text


def _everybody_gets_in(project, visitor, known):
    """Who was there already, and who comes now."""
    assert "<success>1</success>" in _ping(known, project)
    with requests.Session() as new:
        assert "<success>1</success>" in _ping(new, project)
    assert "No batch yet" in visitor.text()
    with Visitor(project.core) as other:
        assert "No batch yet" in other.text()


@pytest.mark.long
@pytest.mark.parametrize(
    "half",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /test/ HTTP/1.1\r\nHost: localh", id="half a head"),
        pytest.param(RPC + b"Content-Length: 9\r\n\r\nreq", id="half a body"),
        pytest.param(RPC + b"Transfer-Encoding: chunked\r\n\r\n9\r\nreq", id="half a chunk"),
        pytest.param(PAGE + FORM + b"Content-Length: 9\r\n\r\ntok", id="half a form"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="a request, and then nothing"
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /te", id="one and a half"),
    ],
)
def test_a_thousand_half_requests_keep_nobody_out(project, stack, half):
    visitor = stack.enter_context(Visitor(project.core))
    known = stack.enter_context(requests.Session())
    _ping(known, project)
    for _ in range(MANY):
        stack.enter_context(_connect(project.url, half))
    _everybody_gets_in(project, visitor, known)


def test_half_requests_cost_nobody_a_connection_that_is_in_use(project, stack):
    form = b"request=%3Cping%3E+%3C%2Fping%3E"
    whole = RPC + FORM + f"Content-Length: {len(form)}\r\n\r\n".encode() + form
    sending = stack.enter_context(_connect(project.url, whole[:-5]))
    for _ in range(MANY):
        stack.enter_context(_connect(project.url, b"GET /test/ HT"))
    sending.sendall(whole[-5:])
    assert b"<success>1</success>" in _until_closed(sending, b"</ping>")


def test_of_a_thousand_connections_that_have_asked_four_hundred_stay(project, stack):
    asked = [stack.enter_context(_connect(project.url, GET)) for _ in range(MANY)]
    for connection in asked:
        _until_closed(connection, b"</p>")
        connection.setblocking(False)
    wait_for(lambda: sum(map(_is_open, asked)) <= CONNECTIONS, "an end of the others")
    assert _is_open(asked[-1])


def _is_open(connection):
    try:
        return connection.recv(65536) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def _until_closed(connection, end=b"\0"):
    """Return what comes until the connection is closed, or to ``end``."""
    got = b""
    with suppress(ConnectionError):
        while end not in got and (data := connection.recv(65536)):
            got += data
    return got


# Deadlines


def _hello(_environ, start_response):
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


class Clock:
    """A clock that stands still until it runs; then it goes on with each look at it."""

    def __init__(self):
        self._now = 0.0
        self.runs = False

    def __call__(self):
        self._now += 0.02 * self.runs
        return self._now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def hurried(tmp_path, clock):
    """The address of a server that waits for a head, by the clock, a tenth of a second."""
    server = WebServer(_hello, 0, spool=tmp_path, head_timeout=0.1, clock=clock)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.port}/"
    finally:
        server.stop()


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: loc",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nreq",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nreq",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /te",
    ],
    ids=["nothing", "half a head", "half a body", "half a chunk", "one and a half"],
)
def test_who_does_not_go_on_is_not_waited_for(hurried, clock, half):
    with _connect(hurried, half) as connection:
        if b"\r\n\r\nGET" in half:
            assert b"200 OK" in _until_closed(connection, b"hello")
        clock.runs = True
        assert _until_closed(connection) == b""


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(hurried, clock):
    clock.runs = True
    with _connect(hurried, b"GET / HTTP/1.1\r\n") as connection:

        def ended():
            try:
                connection.sendall(b"a")
            except OSError:
                return True
            return False

        wait_for(ended, "an end of the connection")


def test_a_connection_is_kept_between_two_requests(hurried, clock):
    with _connect(hurried) as other, _connect(hurried) as connection:
        for _ in range(2):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in _until_closed(connection, b"hello")
            clock.runs = True
            _until_closed(other)  # It has waited too long, and this one not.
            clock.runs = False


# Bodies


@pytest.fixture
def bounded(tmp_path):
    """A project that is not started, and a server for it."""
    project = LocalProject(tmp_path / "p", hosts=0)
    app = make_app(project.core)
    spool = project.directory / "spool"
    server = WebServer(app, 0, spool=spool, allow=body_allowance(project.core))
    project.core.url = f"http://127.0.0.1:{server.port}/test/"
    server.start()
    try:
        yield project, server
    finally:
        server.stop()
        project.close()


def _spooled():
    """Return the bytes of this process's unnamed files."""
    total = 0
    for entry in FILES.iterdir():
        with suppress(OSError):
            if " (deleted)" in str(entry.readlink()):
                total += entry.stat().st_size
    return total


@pytest.mark.skipif(not FILES.is_dir(), reason="no /proc here")
@pytest.mark.parametrize("path", ["", "batches/1", "nosuch"])
def test_what_is_sent_to_the_page_is_not_kept(bounded, path):
    project, _ = bounded
    before = _spooled()
    head = (
        f"POST /test/{path} HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 8000000\r\n\r\n"
    )
    with _connect(project.url, head.encode()) as connection:
        for _ in range(8):
            connection.sendall(bytes(1_000_000)[:-1])
            assert _spooled() - before <= 65536
        connection.sendall(bytes(8))
        answer = _until_closed(connection, b"</p>")
    assert re.match(rb"HTTP/1\.1 (404|405) ", answer), answer[:300]


@pytest.mark.skipif(not FILES.is_dir(), reason="no /proc here")
def test_of_what_is_sent_to_an_rpc_no_more_is_kept_than_php_would(bounded, monkeypatch):
    assert (Php().post_max_size, STOCK.post_max_size) == (1 << 30, 8 << 20)
    project, _ = bounded
    monkeypatch.setattr(project.core, "php", Php(post_max_size=2_000_000))
    before = _spooled()
    head = RPC + FORM + b"Content-Length: 8000000\r\n\r\n"
    with _connect(project.url, head) as connection:
        for _ in range(8):
            connection.sendall(bytes(1_000_000)[:-1])
            assert _spooled() - before <= 2_000_000
        connection.sendall(bytes(8))
        assert b"can't parse request message" in _until_closed(connection, b"</error>")
    assert _spooled() == before


@pytest.mark.parametrize("length", [10**8, 2**40, 2**60], ids=["100 MB", "1 TB", "1 EB"])
def test_a_length_that_is_too_large_is_refused_before_anything_is_sent(bounded, length):
    project, _ = bounded
    for more in (b"", b"Expect: 100-continue\r\n"):
        head = PAGE + FORM + more + f"Content-Length: {length}\r\n\r\n".encode()
        with _connect(project.url, head) as connection:
            answer = _until_closed(connection)
        assert answer.startswith(b"HTTP/1.1 413 "), answer
        assert b"too large" in answer


def test_a_body_that_the_disk_has_no_room_for_is_refused(hurried):
    with _connect(hurried, RPC + f"Content-Length: {2**60}\r\n\r\n".encode()) as connection:
        answer = _until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 413 "), answer
    assert b"no room" in answer


@pytest.mark.long
@pytest.mark.parametrize(
    "chunk",
    [b"100000\r\n" + bytes(0x100000) + b"\r\n", b"1;" + b"x" * 100_000],
    ids=["chunks", "a line between chunks"],
)
def test_a_body_without_an_end_is_not_read_for_ever(bounded, chunk):
    project, _ = bounded
    for head in (RPC, PAGE, RPC + b"Content-Length: 9\r\n"):
        with _connect(project.url, head + b"Transfer-Encoding: chunked\r\n\r\n") as connection:

            def refused(connection=connection):
                try:
                    connection.sendall(chunk)
                except OSError:
                    return True
                return False

            wait_for(refused, "an end of the connection")


def test_a_small_part_of_what_is_no_request_comes_back(project):
    answer = requests.post(
        project.url + "submit_rpc_handler.php",
        files={"request": (None, b'"' * 8_000_000)},
        timeout=60,
    )
    assert "can't parse request message: &quot;" in answer.text
    assert len(answer.text) < 500_000
