"""Replies and requests on the wire: compression, forms, addresses."""

import gzip
import io
from urllib.parse import quote_plus

import pytest
import requests
from werkzeug.wrappers import Response

from boinc_gahp.localproject.core import Php
from boinc_gahp.localproject.server.forms import read_form
from boinc_gahp.serving import WebServer, port_is_free
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


def test_an_urlencoded_form_is_decoded_wherever_its_pieces_are_cut():
    kind = "application/x-www-form-urlencoded"
    for length in range(65_530, 65_540):
        text = "a" * length + " <é>&=+%" * 5_000
        body = f"request={quote_plus(text)}&x%3D=".encode()
        form = read_form(io.BytesIO(body), kind, len(body), Php(), pytest.fail)
        assert form.fields == {"request": text.encode(), "x=": b""}


def _has_ipv6():
    try:
        port_is_free(0, "::1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="no IPv6 here")
def test_a_server_listens_on_an_address_of_ipv6_and_ends():
    server = WebServer(Response("hello"), 0, "::1")
    server.start()
    try:
        assert requests.get(f"http://[::1]:{server.port}/", timeout=60).text == "hello"
    finally:
        server.stop()
    assert not server.running()
    assert port_is_free(server.port, "::1")
