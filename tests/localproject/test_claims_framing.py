"""``web-rpcs.rst``, "Transport and framing": each sentence that no recording shows."""

import socket
from urllib.parse import urlsplit

import pytest

from tests.inside import workunit_names
from tests.localproject.client import job, value

MAX_POST = 8 << 20


@pytest.mark.parametrize("more", [0, 1], ids=["8 MiB", "a byte more"])
def test_a_form_of_more_than_8_mib_is_emptied(stock, more):
    head = "--b\r\nContent-Disposition: form-data; name=request\r\n\r\n<ping>"
    tail = "</ping>\r\n--b--\r\n"
    body = head + " " * (MAX_POST + more - len(head) - len(tail)) + tail
    reply = stock.session.post(
        stock.project.url + "submit_rpc_handler.php",
        data=body,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
        timeout=60,
    )
    assert reply.status_code == 200
    assert ("<success>1</success>" in reply.text) != bool(more)
    assert ("<error_msg>can't parse request message: </error_msg>" in reply.text) == bool(more)


@pytest.mark.parametrize("cut", ["in the headers", "in the body", "before the last byte"])
def test_a_request_that_is_cut_off_does_nothing(client, cut):
    batch_id, name = client.begun("b")
    request = _submit_request(client, batch_id, name)
    length = {"in the headers": 40, "in the body": 300}.get(cut, len(request) - 1)
    with _connection(client) as connection:
        connection.sendall(request[:length])
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert workunit_names(client.project) == []
    assert value(client.rpc("query_batch", batch_id=batch_id), "state") == "0"


def _submit_request(client, batch_id, name):
    body = (
        f"<submit_batch><authenticator>{client.authenticator}</authenticator><batch>"
        f"<batch_id>{batch_id}</batch_id><app_name>uppercase</app_name>{job('j', name)}"
        "</batch></submit_batch>"
    )
    form = f"--b\r\nContent-Disposition: form-data; name=request\r\n\r\n{body}\r\n--b--\r\n"
    return (
        "POST /test/submit_rpc_handler.php HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n"
        f"Content-Length: {len(form)}\r\n\r\n{form}"
    ).encode()


def _connection(client):
    return socket.create_connection(
        ("127.0.0.1", urlsplit(client.project.url).port or 0), timeout=20
    )
