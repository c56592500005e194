"""The authenticator is read nowhere: not in logs, errors, their causes, or anybody's repr."""

import logging
import pickle
import traceback
from html import escape
from urllib.parse import quote, quote_plus

import pytest

from boinc_gahp.errors import GahpError
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.types import BatchSubmission, JobSubmission
from boinc_gahp.secret import Authenticator
from tests.rpc import scripted
from tests.rpc.canned import inside
from tests.rpc.scripted import AUTHENTICATOR, PONG, Scripted, http, ok, raw

OPTIONS = ClientOptions(read_timeout=30, retry_total=0)
HASTY = ClientOptions(read_timeout=0.15, retry_total=0)
ODD = "se&cret <'\">/ é+%41"


def everything_of(error):
    """Return all that can be printed of an error, and of whatever hangs on it."""
    texts = []
    todo = [error]
    seen = set()
    while todo:
        link = todo.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        texts += [str(link), repr(link), *traceback.format_exception(link)]
        texts += [f"{key}={value!r}" for key, value in getattr(link, "__dict__", {}).items()]
        todo += [
            item
            for item in (link.__cause__, link.__context__, *link.args, *vars(link).values())
            if isinstance(item, BaseException)
        ]
    return "\n".join(texts)


def forms(secret):
    return [secret, escape(secret), quote(secret), quote(secret, safe=""), quote_plus(secret)]


def echoing(secret):
    text = (
        "can't parse request message: "
        f"&lt;authenticator&gt;{escape(escape(secret))}&lt;/authenticator&gt; "
        f"{escape(secret)} {secret}"
    )
    message = f"<error><error_num>-1</error_num><error_msg>{text}</error_msg></error>"
    return ok(inside("query_batches", message))


def warning(secret):
    text = f"<br />\n<b>Warning</b>:  look_up({secret}) in <b>/x.php</b> on line <b>3</b><br />"
    return ok(inside("query_batches", text))


def page(secret):
    body = f"<html><title>No {secret}</title>{secret}</html>".encode()
    return raw(http(200, body, Content_Type="text/html"))


def bad_chunk(secret):
    """A body whose second chunk has no length: the library's error quotes what is there."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
    chunks = f"1\r\nx\r\n{secret}\r\n".encode("latin-1", "replace")
    return raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)


CALLS = {
    "query_batches": lambda p: p.query_batches(),
    "create_batch": lambda p: p.create_batch("b", "a"),
    "submit_batch": lambda p: p.submit_batch(BatchSubmission("a", [JobSubmission("j")])),
    "workunit_file": lambda p: b"".join(p.workunit_file("job", 0).chunks()),
    "result_file": lambda p: b"".join(p.result_file("job_0", 0).chunks()),
    "moved_file": lambda p: b"".join(p.moved_file(1, 0).chunks()),
}
PLAYS = {
    "echo": echoing,
    "PHP warning": warning,
    "page": page,
    "ERROR page": lambda secret: raw(
        http(200, f"ERROR: bad {secret}".encode(), Content_Type="text/html")
    ),
    "404 page": lambda secret: raw(http(404, f"<title>{secret}</title>".encode())),
    "500": lambda secret: raw(http(500, secret.encode())),
    "reset": lambda _: scripted.reset(),
    "hang": lambda _: scripted.hang(),
    "hang in body": lambda _: scripted.hang(http(200, PONG)[:-5]),
    "bad chunk": bad_chunk,
    "cut output": lambda _: scripted.short(PONG),
    "no HTTP": lambda _: raw(b"nonsense\r\n\r\n"),
    "redirect": lambda secret: scripted.status(302, Location=f"http://other/?auth_str={secret!a}"),
    "endless redirect": lambda _: scripted.status(307, Location="?cmd=x&auth_str=" + AUTHENTICATOR),
}


@pytest.mark.parametrize("secret", [AUTHENTICATOR, ODD], ids=["usual", "odd"])
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("call", CALLS)
def test_no_trouble_shows_the_authenticator(server, caplog, call, play, secret):
    server.answers.append(PLAYS[play](secret))
    shown = ""
    options = HASTY if "hang" in play else OPTIONS
    with caplog.at_level(logging.DEBUG), WebRpcs(server.url, secret, options=options) as project:
        try:
            CALLS[call](project)
        except GahpError as error:
            shown = everything_of(error)
    logged = "\n".join(f"{r.getMessage()} {r.msg!r} {r.args!r}" for r in caplog.records)
    assert "boinc_gahp.rpc" in {record.name for record in caplog.records}
    for form in forms(secret):
        assert form not in shown
        assert form not in logged


def test_refused_connection_does_not_show_the_url(caplog):
    with Scripted() as gone:
        url = gone.url
    caplog.set_level(logging.DEBUG)
    with (
        WebRpcs(url, AUTHENTICATOR, options=OPTIONS) as project,
        pytest.raises(GahpError) as caught,
    ):
        project.workunit_file("job", 0)
    assert "Connection refused" in str(caught.value)
    assert isinstance(caught.value.__cause__, Exception)
    assert AUTHENTICATOR not in everything_of(caught.value) + caplog.text
    assert "auth_str" not in everything_of(caught.value)


def test_nothing_prints_the_authenticator():
    with WebRpcs("http://h/", AUTHENTICATOR) as project:
        view = project.until(1)
        things = [project, view, project._caller, project._caller.redact, project._authenticator]
        things += [vars(project), dir(project), project._transport]
        assert AUTHENTICATOR not in "\n".join(map(repr, things))
        with pytest.raises(TypeError):
            pickle.dumps(project._authenticator)


def test_an_authenticator_object_is_taken_as_it_is():
    secret = Authenticator(AUTHENTICATOR)
    with WebRpcs("http://h/", secret) as one, WebRpcs("http://h/", AUTHENTICATOR) as other:
        assert one.account == other.account == secret.account


def test_output_urls_in_library_logs_are_redacted(server, caplog):
    server.answers.append(ok(b"x", Content_Disposition="attachment; filename=j_0_r1_0"))
    caplog.set_level(logging.DEBUG, "urllib3")
    with server.client() as project, project.workunit_file("job", 0) as stream:
        assert b"".join(stream.chunks()) == b"x"
    assert (
        "get_output.php?cmd=workunit_file&wu_name=job&file_num=0&auth_str=[hidden]" in caplog.text
    )
    assert AUTHENTICATOR not in caplog.text


def test_one_log_line_an_rpc_or_output_says_what_it_took(server, caplog):
    output = ok(b"12345", Content_Disposition="attachment; filename=j_0_r1_0")
    server.answers += [scripted.reset(), ok(), raw(http(404)), output]
    caplog.set_level(logging.DEBUG, "boinc_gahp.rpc")
    with server.client(retry_total=20) as project:
        project.ping()
        with pytest.raises(GahpError):
            project.query_batches()
        with project.result_file("j_0", 0) as stream:
            list(stream.chunks())
        project.result_file("j_0", 0).close()
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}
    ping, query, whole, begun = (record.getMessage() for record in caplog.records)
    assert ping.startswith(f"ping {server.host}: ok, ")
    assert ping.endswith(f"bytes out, {len(PONG)} bytes in, 2 attempts")
    assert query.startswith(f"query_batches {server.host}: TransportError (")
    assert whole.startswith(f"result_file {server.host}: ok, ")
    assert "5 bytes in" in whole
    assert begun.startswith(f"result_file {server.host}: not read to its end, ")
