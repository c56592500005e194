"""Outputs: whole or not at all, and no error page ever taken for one."""

import time

import pytest

from boinc_gahp.errors import (
    NotFound,
    PermissionDenied,
    ProjectDown,
    ProjectError,
    ProtocolError,
    TransportError,
)
from tests.rpc import scripted
from tests.rpc.scripted import AUTHENTICATOR, http, raw

DISPOSITION = "attachment; filename=job_0_r123_2"
CONTENTS = bytes(range(256)) * 1000


@pytest.fixture
def project(server):
    with server.client() as found:
        yield found


def file(data, disposition=DISPOSITION, **headers):
    shown = {"Content_Type": "application/octet-stream", "Content_Disposition": disposition}
    return http(200, data, **{**shown, **headers})


def page(text):
    return raw(http(200, text.encode(), Content_Type="text/html; charset=UTF-8"), stay=True)


def fetched(project, size=65536):
    with project.result_file("job_0", 0) as stream:
        return b"".join(stream.chunks(size))


@pytest.mark.parametrize("size", [1 << 20, 1000], ids=["large chunks", "small chunks"])
def test_output_comes_whole_with_its_name_and_length(server, project, size):
    server.answers.append(raw(file(CONTENTS), stay=True))
    with project.result_file("job_0", 2) as stream:
        assert (stream.filename, stream.length) == ("job_0_r123_2", len(CONTENTS))
        chunks = list(stream.chunks(size))
    assert b"".join(chunks) == CONTENTS
    assert max(map(len, chunks)) <= size
    assert "identity" in server.requests[0].headers["accept-encoding"]


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('attachment; filename="a b_0"', "a b_0"),
        ("attachment; filename=../../etc/passwd", "passwd"),
        ("attachment; filename=..\\x", "x"),
        ("attachment; FILENAME=abcd_1; size=3", "abcd_1"),
    ],
)
def test_filename_is_the_last_part_only(server, project, disposition, name):
    server.answers.append(raw(file(b"", disposition), stay=True))
    with project.result_file("job_0", 0) as stream:
        assert stream.filename == name
        assert b"".join(stream.chunks()) == b""


PAGES = [
    ("ERROR: bad authenticator", PermissionDenied, "bad authenticator"),
    ("ERROR: something new", ProjectError, "something new"),
    ("bad command", ProtocolError, "'bad command'"),
    ("", ProtocolError, "an empty answer came instead of a file"),
    ("<!DOCTYPE html><html><title>Log in</title></html>", ProtocolError, "'Log in'"),
    ("<html><body>Can't connect to database</body></html>", ProjectDown, "try again later"),
]


@pytest.mark.parametrize(("text", "kind", "says"), PAGES, ids=[page[0][:30] for page in PAGES])
def test_page_is_an_error_before_a_byte_is_yielded(server, project, text, kind, says):
    server.answers.append(page(text))
    with pytest.raises(kind) as caught:
        project.result_file("job_0", 3)
    assert says in str(caught.value)
    assert " to hand out an output (file 3 of 'job_0'" in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"<br />\n<b>Warning</b>:  Undefined array key 2"])
def test_directory_instead_of_a_file_is_reported_at_once(server, body):
    data = file(body, "attachment; filename=d9", Content_Length="4096")
    server.answers.append(scripted.hang(data))
    patient = server.client(read_timeout=3600)
    with patient as project, pytest.raises(NotFound, match="its directory d9"):
        project.workunit_file("job", 2)


@pytest.mark.parametrize(
    "play",
    [
        raw(file(CONTENTS)[:-1]),
        raw(file(CONTENTS[:-5], Content_Length=str(len(CONTENTS)))),
        scripted.hang(file(CONTENTS)[:-1]),
        raw(file(b"", Content_Length="", Transfer_Encoding="chunked") + b"5\r\nabcde\r\n7\r\nabc"),
    ],
    ids=["closed early", "short", "hangs at its end", "cut chunks"],
)
def test_output_that_is_not_whole_is_an_error_at_its_end(server, play):
    server.answers.append(play)
    hasty = server.client(read_timeout=1)
    with hasty as project, pytest.raises((ProtocolError, TransportError)):
        fetched(project)


def test_opening_is_repeated(server):
    server.answers += [scripted.reset(), scripted.status(503), raw(file(b"out"), stay=True)]
    with server.client(retry_total=20) as project:
        assert fetched(project) == b"out"
    assert len(server.requests) == 3


def test_connection_is_used_again_after_a_whole_output_only(server, project):
    server.answers.append(raw(file(CONTENTS * 20), stay=True))
    assert len(fetched(project)) == len(CONTENTS) * 20
    fetched(project)
    with project.result_file("job_0", 0) as stream:
        next(stream.chunks())
    fetched(project)
    assert [request.connection for request in server.requests] == [0, 0, 0, 1]


def test_queries_name_what_is_asked_for(server, project):
    server.answers.append(raw(file(b"PK", "attachment; filename=boinc_x.zip"), stay=True))
    project.result_file("jöb 0&_0", 1).close()
    project.workunit_file("job", 0).close()
    derived = [request.path.partition("auth_str=") for request in server.requests]
    assert [path for path, _, _ in derived] == [
        "/test/get_output.php?cmd=result_file&result_name=j%C3%B6b+0%26_0&file_num=1&",
        "/test/get_output.php?cmd=workunit_file&wu_name=job&file_num=0&",
    ]
    assert [auth == AUTHENTICATOR for _, _, auth in derived] == [False, True]


def test_a_moved_output_is_asked_for_with_the_cookie_of_a_login(server, project):
    server.answers.append(raw(file(b"x", "attachment; filename=job__file_out"), stay=True))
    with project.moved_file(7, 1) as stream:
        assert (stream.filename, stream.length) == ("job__file_out", 1)
    (request,) = server.requests
    assert request.path == "/test/get_output3.php?action=get_file&result_id=7&index=1&download=1"
    assert request.headers["cookie"] == f"auth={AUTHENTICATOR}"


def test_a_redirect_to_a_login_form_is_a_refusal(server, project):
    server.answers.append(scripted.status(302, Location="/test/login_form.php?next_url=x"))
    with pytest.raises(ProjectError, match="it wants a login"):
        project.moved_file(7, 0)
    assert len(server.requests) == 1


def test_deadline_ends_an_output(server, project):
    server.answers.append(scripted.drip(file(CONTENTS), 0.01))
    with pytest.raises(TransportError, match=r"in time|time limit"):
        fetched(project.until(time.monotonic() + 1))
