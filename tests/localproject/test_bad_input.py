"""What comes from the network and is wrong, or ill-meant: answered, and without effect."""

import hashlib
import os
import re
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings, strategies as st

from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.server.application import FILE_RPCS, SUBMIT_RPCS, make_app
from tests.inside import staged_files
from tests.localproject.client import job

PAGES = ["submit_rpc_handler.php", "job_file.php"]
# XML


def _doctype(definitions, content):
    return f"<!DOCTYPE ping [{definitions}]><ping>{content}</ping>"


_LAUGHS = '<!ENTITY a0 "ha">' + "".join(
    f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(_doctype(_LAUGHS, "&a9;"), id="billion laughs"),
        pytest.param(_doctype(f'<!ENTITY a "{"a" * 50_000}">', "&a;" * 5000), id="quadratic"),
        pytest.param(_doctype('<!ENTITY a SYSTEM "file:///etc/passwd">', "&a;"), id="external"),
        pytest.param(
            _doctype('<!ENTITY % a SYSTEM "http://127.0.0.1:9/">%a;', " "), id="parameter"
        ),
        pytest.param(
            '<!DOCTYPE ping SYSTEM "file:///etc/passwd"><ping> </ping>', id="external DTD"
        ),
        pytest.param("\n<!-- c -->" + _doctype("", " "), id="after a comment"),
        pytest.param("<a>" * 200_000, id="deep"),
        pytest.param("<submit_batch><batch>" + "<job>" * 50_000, id="deep jobs"),
        pytest.param("<" + "a" * 1_000_000, id="endless name"),
        pytest.param("<ping x='1' x='2'> </ping>", id="attribute twice"),
        pytest.param("<ping>\ufffe</ping>", id="not a character"),
        pytest.param("<ping> </ping><ping> </ping>", id="two roots"),
        pytest.param("", id="nothing"),
        pytest.param("<ping>\x00</ping>", id="NUL"),
        pytest.param("ping", id="no XML"),
    ],
)
@pytest.mark.parametrize("page", PAGES)
def test_bad_xml_is_no_request(client, page, document):
    reply = client.post(document, page)
    assert reply.status_code == 200
    assert "can't parse request message: " in reply.text
    assert "root:" not in reply.text


# Uploads


def _form(*parts, end=b"--b--\r\n"):
    return (
        b"".join(
            b"--b\r\nContent-Disposition: form-data; "
            + head.encode()
            + b"\r\n\r\n"
            + data
            + b"\r\n"
            for head, data in parts
        )
        + end
    )


def _upload_form(client, contents, end=b"--b--\r\n"):
    request = (
        f"<upload_files><authenticator>{client.authenticator}</authenticator>"
        "<phys_name>x.dat</phys_name></upload_files>"
    )
    return _form(
        ("name=request", request.encode()),
        ('name="file_0"; filename="x.dat"', contents),
        end=end,
    )


def _post(body, headers):
    return (
        "POST /test/job_file.php HTTP/1.0\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        f"{headers}\r\n"
    ).encode() + body


@pytest.mark.parametrize(
    "lie", ["shorter", "no end", "negative", "no number", "twice", "no length"]
)
def test_an_upload_that_lies_about_its_length_stores_nothing(client, lie):
    body = _upload_form(client, b"contents", end=b"" if lie == "no end" else b"--b--\r\n")
    length = {
        "shorter": f"Content-Length: {len(body) - 20}\r\n",
        "no end": f"Content-Length: {len(body)}\r\n",
        "negative": "Content-Length: -1\r\n",
        "no number": "Content-Length: many\r\n",
        "twice": f"Content-Length: {len(body)}\r\nContent-Length: 3\r\n",
        "no length": "",
    }[lie]
    reply = _talk(client, _post(body, length))
    assert reply.startswith((b"HTTP/1.0 400", b"HTTP/1.0 200"))
    assert b"<success/>" not in reply
    _nothing_is_stored(client)


def _nothing_is_stored(client):
    assert staged_files(client.project) == []
    assert not client.project.core.download.exists("x.dat")
    assert not list((client.project.directory / "spool").iterdir())


def test_a_chunked_upload_is_taken(client):
    body = _upload_form(client, b"contents")
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, body[n : n + 1]) for n in range(len(body)))
    head = _post(b"", "Transfer-Encoding: chunked\r\n").replace(b"HTTP/1.0", b"HTTP/1.1")
    reply = _talk(client, head + chunks + b"0\r\n\r\n", until=b"</upload_files>")
    assert b"<success/>" in reply
    assert staged_files(client.project) == ["x.dat"]


@pytest.mark.parametrize("chunk", [b"zz\r\nx\r\n", b"-1\r\nx\r\n", b"3\r\nabcdef\r\n"])
def test_garbage_in_chunks_is_refused(client, chunk):
    head = _post(b"", "Transfer-Encoding: chunked\r\n").replace(b"HTTP/1.0", b"HTTP/1.1")
    assert _talk(client, head + chunk).startswith(b"HTTP/1.1 400")
    _nothing_is_stored(client)


def test_contents_that_are_not_what_their_name_says_cannot_be_replaced(client):
    """The server does not compare a name with an MD5; but what is there stays there."""
    name = f"{hashlib.md5(b'true').hexdigest()}.dat"
    core = client.project.core
    for contents, words in ((b"false", "<success/>"), (b"true", "file immutability violation")):
        reply = client.post(
            f"<upload_files><authenticator>{client.authenticator}</authenticator>"
            f"<phys_name>{name}</phys_name></upload_files>",
            "job_file.php",
            {"file_0": (name, contents)},
        )
        assert words in reply.text
    assert core.download.path(name).read_bytes() == b"false"
    client.submit(client.create_batch("b"), [job("j", name)])
    assert hashlib.md5(b"false").hexdigest() in client.rows("SELECT xml_doc FROM workunit")[0][0]


# HTTP


def _connect(client):
    port = urlsplit(client.project.url).port
    assert port
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def _talk(client, request, until=b""):
    """Send bytes and return what comes, to its end or to ``until``.

    Of a refusal that comes while there is more to read, the end may be lost.
    """
    received = bytearray()
    with suppress(ConnectionResetError), _connect(client) as connection:
        connection.sendall(request)
        while not until or until not in received:
            data = connection.recv(65536)
            if not data:
                break
            received += data
    return bytes(received)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50) + b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /test/ HTTP/1.1\r\nNo colon\r\n\r\n",
        b"POST /test/job_file.php HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"Header: x\r\n" * 25_000,
    ],
    ids=["TLS", "no address", "no colon", "encoding", "endless headers"],
)
def test_what_is_no_http_is_refused(client, request_bytes):
    reply = _talk(client, request_bytes)
    assert not reply or re.match(rb"HTTP/1\.[01] (400|404|431|501) ", reply)
    assert "<success>1</success>" in client.post("<ping> </ping>").text


@pytest.mark.parametrize("path", ["../../secret", "../../../../etc/passwd", "..%2f..%2fsecret"])
def test_a_path_with_dots_leads_nowhere(client, path):
    reply = _talk(client, f"GET /test/download/{path} HTTP/1.0\r\n\r\n".encode())
    assert reply.startswith((b"HTTP/1.0 404", b"HTTP/1.0 400"))


# Anything at all


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    project = LocalProject(tmp_path_factory.mktemp("any") / "p", hosts=0)
    app = make_app(project.core)
    app.testing = True  # what is raised, is raised here
    with app.test_client() as client:
        yield project, client
    project.close()


_TEXT = st.text(st.characters(codec="utf-8"), max_size=12).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;")
)
_ELEMENTS = st.sampled_from(
    ["authenticator", "batch", "batch_id", "batch_name", "app_name", "job", "job_id", "job_name",
     "name", "phys_name", "input_file", "mode", "source", "expire_time", "min_mod_time",
     "delete_time", "job_params", "get_job_details", "input_template", "command_line"]
)  # fmt: skip
_XML = st.recursive(
    _TEXT | st.sampled_from(["uppercase", "1", "-1", "1e999", "0x1", "9" * 20]),
    lambda inner: st.lists(st.tuples(_ELEMENTS, inner), max_size=5).map(
        lambda pairs: "".join(f"<{tag}>{text}</{tag}>" for tag, text in pairs)
    ),
    max_leaves=12,
)


def _dump(project):
    return list(project.core.db.connection().iterdump())


@settings(max_examples=int(os.environ.get("EXAMPLES", "30")))
@given(body=st.binary(max_size=200), page=st.sampled_from(PAGES))
def test_any_bytes_are_answered_and_change_nothing(pages, body, page):
    project, client = pages
    before = _dump(project)
    for content_type in (
        "multipart/form-data; boundary=b",
        "application/x-www-form-urlencoded",
        "text/plain",
    ):
        for data in (body, b"request=" + body, _form(("name=request", body))):
            reply = client.post(f"/test/{page}", data=data, content_type=content_type)
            assert reply.status_code == 200
    assert _dump(project) == before


@settings(max_examples=int(os.environ.get("EXAMPLES", "60")))
@given(rpc=st.sampled_from([*SUBMIT_RPCS, *FILE_RPCS]), inner=_XML, signed=st.booleans())
def test_any_elements_are_answered_and_change_nothing_without_an_authenticator(
    pages, rpc, inner, signed
):
    project, client = pages
    page = PAGES[rpc in FILE_RPCS]
    auth = f"<authenticator>{project.authenticator}</authenticator>" if signed else ""
    before = [] if signed else _dump(project)
    reply = client.post(f"/test/{page}", data={"request": f"<{rpc}>{auth}{inner}</{rpc}>"})
    assert reply.status_code == 200
    assert f"</{rpc}>" in reply.text or "can't parse request message" in reply.text
    if not signed:
        assert _dump(project) == before
