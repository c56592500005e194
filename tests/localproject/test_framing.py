"""Replies and requests on the wire: compression, connections, bad forms, escapes, numbers."""

import gzip
import http.client
import io
from urllib.parse import quote_plus

import pytest
import requests

from boinc_gahp.localproject.php import Php
from boinc_gahp.localproject.server.forms import read_form
from boinc_gahp.localproject.server.server import WebServer, port_is_free
from tests.localproject.client import job


def test_replies_are_compressed_when_that_is_accepted(client):
    batch_id, name = client.begun("b")
    client.submit(batch_id, [job(f"j{n}", name) for n in range(100)])
    request = (
        f"<query_batch2><authenticator>{client.authenticator}</authenticator>"
        "<batch_name>b</batch_name></query_batch2>"
    )
    url = client.project.url + "submit_rpc_handler.php"
    plain = requests.post(
        url, data={"request": request}, headers={"Accept-Encoding": "identity"}, timeout=20
    )
    with requests.post(url, data={"request": request}, stream=True, timeout=60) as packed:
        raw = packed.raw.read()
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(raw) < len(plain.content) / 5
    assert gzip.decompress(raw).count(b"<job>") == plain.content.count(b"<job>") == 100


def _urlencoded(body):
    kind = "application/x-www-form-urlencoded"
    return read_form(io.BytesIO(body), kind, len(body), Php(), _no_file)


def _no_file():
    raise AssertionError("the form has no files")


def test_an_urlencoded_form_is_decoded_wherever_its_pieces_are_cut():
    for length in range(65_530, 65_540):
        text = "a" * length + " <é>&=+%" * 20_000
        assert _urlencoded(f"request={quote_plus(text)}&x%3D=".encode()).fields == {
            "request": text.encode(),
            "x=": b"",
        }


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data; name=x"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\nno header\r\n--b--\r\n"),
        ("multipart/form-data", b"--b--"),
        ("text/plain", b"request=x"),
    ],
    ids=["cut off", "no disposition", "no boundary", "no form"],
)
def test_a_body_that_is_no_form_is_no_request(client, content_type, body):
    reply = client.session.post(
        client.project.url + "job_file.php", data=body, headers={"Content-Type": content_type}
    )
    assert "can't parse request message: <" in reply.text
    assert not list((client.project.directory / "spool").iterdir())


def _has_ipv6():
    try:
        port_is_free(0, "::1")
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.2",
        pytest.param("::1", marks=pytest.mark.skipif(not _has_ipv6(), reason="no IPv6 here")),
    ],
)
def test_a_server_listens_on_the_address_it_is_given_and_ends(host):
    server = WebServer(_hello, 0, host)
    server.start()
    try:
        assert _heard(host, server.port) == b"hello"
        assert not port_is_free(server.port, host)
        # Something else may have this port by now.
        assert _heard("127.0.0.1", server.port) != b"hello"
    finally:
        server.stop()
    assert not server.running()
    assert port_is_free(server.port, host)


def _heard(host, port):
    connection = http.client.HTTPConnection(host, port, timeout=60)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return b""
    finally:
        connection.close()


def _hello(_environ, start_response):
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


def test_a_small_part_of_what_is_no_request_comes_back(client):
    answer = requests.post(
        client.project.url + "submit_rpc_handler.php",
        files={"request": (None, b'"' * 8_000_000)},
        timeout=60,
    )
    assert "can't parse request message: &quot;" in answer.text
    assert len(answer.text) < 500_000
