"""Files on other servers are fetched once to be measured."""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.api import remote_files
from boinc_gahp.api.types import RemoteFile
from boinc_gahp.backoff import Backoff
from boinc_gahp.config import ProjectSettings, Timeouts
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import StagingError
from tests.helpers import certified

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from boinc_gahp.submit.types import Progress

CONTENTS = b"remote contents\n" * 10_000


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.asked.append(self.path)
            self.server.headers.append(dict(self.headers))
            number = self.server.asked.count(self.path)
        self.server.pages[self.path](self, number)
        self.close_connection = True

    def answer(
        self, status: int = 200, body: bytes = b"", length: int | None = None, **headers: str
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length is None or length >= 0:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.pages: dict[str, Callable[[_Handler, int], None]] = {}
        self.root = f"http{'s' if context else ''}://localhost:{self.server_port}"
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def page(self, path: str, answer: Callable[[_Handler, int], None]) -> str:
        """Answer requests for a path; return its URL."""
        self.pages[path] = answer
        return self.root + path

    def redirect(self, path: str, to: str) -> str:
        return self.page(path, lambda it, _: it.answer(302, b"elsewhere", Location=to))

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections are broken off by design."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    with Server(context) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def _server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def server(_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(remote_files, "_BACKOFF", Backoff(0.01))
    _server.asked.clear()
    _server.headers.clear()
    return _server


def measure(
    *urls: str, ca_bundle: str | None = None, read: float = 30, **more: object
) -> dict[str, RemoteFile]:
    settings = ProjectSettings(ProjectUrl("https://localhost/test/"), ca_bundle=ca_bundle)
    timeouts = Timeouts(connect=30, read=read)
    return dict(remote_files.measure(urls, settings, timeouts, **more))  # type: ignore[arg-type]


def expected(url: str, contents: bytes = CONTENTS) -> dict[str, RemoteFile]:
    return {url: RemoteFile(url, len(contents), hashlib.md5(contents).hexdigest())}


def good(handler: _Handler, _number: int) -> None:
    handler.answer(200, CONTENTS)


def refusal(*urls: str, ca_bundle: str | None = None) -> str:
    with pytest.raises(StagingError) as caught:
        measure(*urls, ca_bundle=ca_bundle)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_a_file_is_fetched_once_and_measured_without_an_account(server: Server) -> None:
    url = server.page("/file.dat?x=1", good)
    assert measure(url) == expected(url)
    assert server.asked == ["/file.dat?x=1"]
    assert not {"Authorization", "Cookie"} & set(server.headers[0])


def test_a_file_without_a_length_is_measured_to_its_end(server: Server) -> None:
    url = server.page("/endless", lambda it, _: it.answer(200, CONTENTS, length=-1))
    assert measure(url) == expected(url)


def test_an_empty_file_is_a_file(server: Server) -> None:
    url = server.page("/empty", lambda it, _: it.answer(200, b""))
    assert measure(url) == expected(url, b"")


def test_what_comes_compressed_is_measured_as_volunteers_get_it(server: Server) -> None:
    packed = gzip.compress(CONTENTS)
    url = server.page("/packed", lambda it, _: it.answer(200, packed, Content_Encoding="gzip"))
    assert measure(url) == expected(url)


def test_several_files_are_fetched_at_the_same_time(server: Server) -> None:
    together = threading.Barrier(3)

    def slow(handler: _Handler, number: int) -> None:
        together.wait(60)
        good(handler, number)

    urls = [server.page(f"/{number}", slow) for number in range(3)]
    assert set(measure(*urls)) == set(urls)


def test_progress_counts_the_bytes_of_all_files(server: Server) -> None:
    seen: list[Progress] = []
    urls = [server.page("/a", good), server.page("/b", good)]
    measure(*urls, progress=seen.append)
    assert {each.step for each in seen} == {"reading"}
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert (seen[-1].done, seen[-1].total) == (2 * len(CONTENTS),) * 2


def test_redirects_are_followed_to_other_hosts_but_not_for_ever(server: Server) -> None:
    server.page("/end", good)
    there = server.redirect("/first", f"http://127.0.0.1:{server.server_port}/end")
    assert measure(there) == expected(there)
    loop = server.redirect("/loop", "/loop2")
    server.redirect("/loop2", "/loop")
    assert "redirects 5 times or more" in refusal(loop)
    assert "HTTP 302" in refusal(server.redirect("/itself", "/itself"))
    assert "which is not followed" in refusal(server.redirect("/ftp", "ftp://h/x"))
    assert "which is not followed" in refusal(server.redirect("/broken", "http://[::1/"))
    assert "this URL cannot be used" in refusal(server.redirect("/port", "http://h:99999/"))


def test_a_redirect_whose_body_never_ends_is_followed_at_once(server: Server) -> None:
    server.page("/end", good)

    def endless(handler: _Handler, _number: int) -> None:
        handler.answer(302, b"", length=-1, Location="/end")
        while not server.ended.is_set():
            handler.wfile.write(b"elsewhere" * 1000)

    there = server.page("/endless", endless)
    assert measure(there) == expected(there)


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_file_that_cannot_be_had_is_asked_for_once(server: Server, status: int) -> None:
    url = server.page("/gone", lambda it, _: it.answer(status, b"<html>"))
    said = refusal(url)
    assert f'remote file "{url}": its server answered HTTP {status}' in said
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (lambda it: it.answer(503, b"later"), "HTTP 503"),
        (lambda it: it.answer(200, b"half", length=1000), "closed the connection too early"),
        (lambda it: it.connection.close(), "cannot be reached, or closed the connection"),
        (lambda it: it.server.ended.wait(60), "did not answer, or stopped sending"),
    ],
    ids=["503", "cut", "closed", "silent"],
)
def test_passing_trouble_is_met_by_another_attempt(
    server: Server,
    trouble: Callable[[_Handler], None],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "boinc_gahp.rpc.retry")  # what the command line shows

    def once(handler: _Handler, number: int) -> None:
        if number == 1:
            trouble(handler)
        else:
            good(handler, number)

    is_silence = said.startswith("did")
    url = server.page("/once", once)
    assert measure(url, read=1 if is_silence else 30) == expected(url)
    (record,) = caplog.records
    assert re.search(rf'remote file .*/once": .*{said}.*; trying again', record.getMessage())
    if is_silence:
        return  # that is slow
    url = server.page("/always", lambda it, _: trouble(it))
    assert re.search(rf'remote file .*/always": .*{said}.*; submit again when', refusal(url))
    assert server.asked.count("/always") == 3


def test_the_first_file_that_cannot_be_had_ends_it_all(server: Server) -> None:
    def endless(handler: _Handler, _number: int) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(65536))

    endless_url = server.page("/forever", endless)
    gone = server.page("/nothing", lambda it, _: it.answer(404))
    assert "/nothing" in refusal(endless_url, gone)


def test_a_server_that_is_not_there_is_reported(server: Server) -> None:
    with serving() as other:
        url = other.root + "/x"
    assert "Connection refused" in refusal(url)


def test_a_login_in_a_url_is_not_told(server: Server) -> None:
    server.page("/secret", lambda it, _: it.answer(404))
    said = refusal(f"http://me:pass123@localhost:{server.server_port}/secret")
    assert "pass123" not in said


def test_certificates_count_and_https_does_not_lead_to_http(server: Server, tmp_path: Path) -> None:
    context, bundle = certified(tmp_path, "localhost")
    server.page("/plain", good)
    with serving(context) as secure:
        url = secure.page("/file", good)
        assert measure(url, ca_bundle=str(bundle)) == expected(url)
        assert "certificate is not trusted" in refusal(url)
        down = secure.redirect("/down", server.root + "/plain")
        assert "not from https to http" in refusal(down, ca_bundle=str(bundle))


def test_the_projects_own_certificates_do_not_count_for_other_hosts(
    server: Server, tmp_path: Path
) -> None:
    context, bundle = certified(tmp_path, "localhost", "127.0.0.1")
    with serving(context) as secure:
        secure.page("/file", good)
        elsewhere = f"https://127.0.0.1:{secure.server_port}/file"
        assert "certificate is not trusted" in refusal(elsewhere, ca_bundle=str(bundle))
        away = secure.redirect("/away", elsewhere)
        assert "certificate is not trusted" in refusal(away, ca_bundle=str(bundle))


def test_a_redirect_leaves_nothing_to_be_sent_on(server: Server) -> None:
    server.page("/end", good)
    url = server.page(
        "/first", lambda it, _: it.answer(302, b"", Location="/end", Set_Cookie="a=b; Path=/")
    )
    assert measure(url) == expected(url)
    assert server.asked == ["/first", "/end"]
    for headers in server.headers:
        assert headers["Accept-Encoding"] == "identity"
        assert headers["User-Agent"].startswith("boinc_gahp/")
        assert not {"Authorization", "Cookie"} & set(headers)


def test_files_are_fetched_through_the_projects_proxy(server: Server) -> None:
    url = "http://files.example.edu/file"
    server.page(url, good)
    settings = ProjectSettings(ProjectUrl("https://localhost/test/"), proxy=server.root)
    assert remote_files.measure([url], settings, Timeouts(connect=5, read=5)) == expected(url)


def test_a_header_without_end_is_given_up(server: Server) -> None:
    def endless(handler: _Handler, _number: int) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not server.ended.is_set():
            handler.wfile.write(b"x" * 65536)

    assert "submit again when" in refusal(server.page("/header", endless))
