"""The files of a project, where they lie and what may be put there."""

import http.server
import threading

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.localproject.core import name_key
from boinc_gahp.localproject.hosts.transfers import fetch
from boinc_gahp.localproject.store import FileStore, directory_of, valid_physical_name


@pytest.mark.parametrize(
    ("name", "directory"),
    [("nosuchfile.txt", "1b5"), ("b", "3fe"), ("p0_261751_tpl_0_r760495882_0", "324"), ("", "d9")],
)
def test_files_lie_where_the_recorded_server_has_them(name, directory):
    assert directory_of(name) == directory


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "/etc/passwd", "a\0b"])
def test_a_name_that_leads_elsewhere_is_never_a_path(name, tmp_path):
    store = FileStore(tmp_path, tmp_path)
    with pytest.raises(ValueError, match="bad file name"):
        store.path(name)
    assert not store.exists(name)
    assert store.find(name) is None
    assert not valid_physical_name(name)


@given(st.text(max_size=20))
def test_equal_names_have_equal_keys(name):
    assert name_key(f"{name}  ") == name_key(name)
    assert name_key(name_key(name)) == name_key(name)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        elsewhere = {"/moved": "http://192.0.2.1/", "/there": "x", "/round": "/round"}
        self.send_response(302 if self.path in elsewhere else 200)
        self.send_header("Location", elsewhere.get(self.path, "http://[/"))
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"abc")

    def log_message(self, format, *args):  # noqa: A002
        """Say nothing."""


@pytest.fixture
def address():
    with http.server.HTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_fetching_gives_the_bytes_also_from_elsewhere_on_this_machine(address):
    received = bytearray()
    fetch(f"{address}/there", received.extend)
    assert received == b"abc"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("{server}/moved", "only http://127.0.0.1"),
        ("{server}/round", "more than 5 redirects"),
        ("http://127.0.0.1:99999/", "Port out of range"),
    ],
    ids=["elsewhere", "in a circle", "no port"],
)
def test_a_file_that_is_not_all_there_is_an_error(address, path, words):
    with pytest.raises((ValueError, ConnectionError), match=words):
        fetch(path.format(server=address), bytearray().extend)
