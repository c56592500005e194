"""Over real sockets: what a network and a web server do to a request, and what we make of it."""

import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from boinc_gahp.errors import (
    PermissionDenied,
    ProjectDown,
    ProjectError,
    ProtocolError,
    RpcError,
    TransportError,
)
from boinc_gahp.rpc._transport import HttpTransport
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.types import BatchSubmission, JobSubmission
from tests.rpc import scripted
from tests.rpc.canned import inside, trouble
from tests.rpc.scripted import AUTHENTICATOR, PONG, Scripted, http, ok, raw

ONCE = ClientOptions(read_timeout=30, retry_total=0)


def hasty(play, **options):
    """Return ``options`` with a short read time-out if ``play`` keeps silence."""
    return {**options, "read_timeout": 0.3} if "hang" in play else options


HTML = raw(http(200, b"<html><title>Router login</title></html>", Content_Type="text/html"))
CREATED = ok(inside("create_batch", "<batch_id>7</batch_id>"))
QUIET_FATAL = scripted.status(500, b'<?xml version="1.0"?>\n<ping>\n')
FATAL = b"<br />\n<b>Fatal error</b>:  Uncaught x in <b>/f</b> on line <b>1</b>"
LOUD_FATAL = ok(inside("ping", FATAL))


def refusal(number, words):
    error = f"<error><error_num>{number}</error_num><error_msg>{words}</error_msg></error>"
    return ok(inside("ping", error))


DOWN = refusal(-183, "down")
NO = refusal(-1, "no file access")


def ping(server, **options):
    with server.client(**options) as project:
        project.ping()


FAULTS = {
    "reset": (scripted.reset(), TransportError, "the connection failed"),
    "closed without answer": (scripted.goodbye(), TransportError, "the connection failed"),
    "hang": (scripted.hang(), TransportError, "no answer in time"),
    "hang in headers": (
        scripted.hang(b"HTTP/1.1 200 OK\r\nA: b"),
        TransportError,
        "no answer in time",
    ),
    "hang in body": (scripted.hang(http(200, PONG)[:-9]), TransportError, "no answer in time"),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), TransportError, "the connection failed"),
    "500": (scripted.status(500, b"<html>oops</html>"), TransportError, "HTTP 500"),
    "500 of a PHP fatal error": (QUIET_FATAL, ProtocolError, "PHP died"),
    "502": (scripted.status(502), TransportError, "HTTP 502"),
    "empty": (ok(b""), ProtocolError, "the answer is empty"),
    "cut XML": (ok(PONG[:-9]), ProtocolError, "the answer is cut off"),
    "shorter than announced": (scripted.short(), ProtocolError, "broke off"),
    "cut chunks": (scripted.chunked(whole=False), ProtocolError, "broke off"),
    "cut gzip": (scripted.compressed(cut=30), ProtocolError, "cut off"),
    "no gzip": (raw(http(200, PONG, Content_Encoding="gzip")), ProtocolError, "is damaged"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_an_error_that_names_rpc_host_and_trouble_and_a_repetition_overcomes(
    server, fault
):
    play, kind, says = FAULTS[fault]
    server.answers.append(play)
    with pytest.raises(kind) as caught:
        ping(server, **hasty(fault))
    assert says in str(caught.value)
    assert f"{server.host}, asked to answer: " in str(caught.value)
    assert caught.value.may_be_running
    server.answers.append(ok())
    ping(server, **hasty(fault, retry_total=60))
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "play",
    [ok(), scripted.compressed(), scripted.chunked(), scripted.drip(http(200, PONG), 0.001)],
    ids=["plain", "gzip", "chunked", "drip"],
)
def test_whole_answer_is_taken_however_it_travels(server, play):
    server.answers.append(play)
    ping(server)


@pytest.mark.parametrize(
    ("play", "kind", "says", "times"),
    [
        (HTML, ProtocolError, "a web page ('Router login')", 1),
        (LOUD_FATAL, ProtocolError, "PHP died", 1),
        (NO, PermissionDenied, "no file access", 1),
        (QUIET_FATAL, ProtocolError, "PHP died", 3),
    ],
    ids=["HTML", "PHP fatal error", "no", "quiet PHP fatal error"],
)
def test_lasting_trouble_is_reported_at_once_or_after_three_times(server, play, kind, says, times):
    server.answers.append(play)
    with pytest.raises(kind, match=re.escape(says)):
        ping(server, retry_total=60)
    assert len(server.requests) == times


BEGUN = b'<?xml version="1.0"?>\n<query_files>\n'
MATTERS_OF_COURSE = {
    "500": scripted.status(500, BEGUN),
    "200, cut off": ok(BEGUN),
    "200, with PHP's words": ok(BEGUN + FATAL + b"</query_files>"),
}


@pytest.mark.parametrize("play", MATTERS_OF_COURSE.values(), ids=MATTERS_OF_COURSE)
def test_php_fatal_error_that_is_a_matter_of_course_is_reported_at_once(server, play, caplog):
    server.answers.append(play)
    with server.client(retry_total=60) as project:
        with pytest.raises(ProtocolError) as associating:
            project.query_files(["a.dat"], batch_id=7)
        with pytest.raises(ProtocolError) as completed:
            project.query_completed_job("j")
    assert associating.value.php_fatal
    assert completed.value.php_fatal
    assert len(server.requests) == 2
    # Nor does it fill the log.
    assert "Uncaught x" not in caplog.text


def test_a_question_for_files_that_no_batch_is_to_have_is_repeated_after_a_cut(server):
    end = b"<absent_files></absent_files></query_files>"
    server.answers += [ok(BEGUN), ok(BEGUN + end)]
    with server.client(retry_total=60) as project:
        assert project.query_files(["a.dat"]) == ()


@pytest.mark.parametrize(
    ("kind", "level"), [("Deprecated", logging.INFO), ("Warning", logging.WARNING)]
)
def test_what_a_later_php_will_refuse_is_no_warning(server, caplog, kind, level):
    words = f"<br />\n<b>{kind}</b>:  x in <b>/f</b> on line <b>1</b><br />"
    server.answers.append(ok(inside("ping", words + "<success>1</success>")))
    with caplog.at_level(logging.INFO):
        ping(server)
    told = [each for each in caplog.records if f"PHP reports {kind}" in each.getMessage()]
    assert [each.levelno for each in told] == [level]


def test_stopped_project_is_asked_again_until_it_is_back(server):
    server.answers += [DOWN, DOWN, ok()]
    ping(server, retry_total=60)
    assert len(server.requests) == 3


def test_retries_end_with_their_total_time(server):
    server.answers.append(DOWN)
    with pytest.raises(ProjectDown):
        ping(server, retry_total=1.5)


def test_with_a_deadline_retries_go_on_until_then(server):
    """As a BOINC_SUBMIT has to, which HTCondor 9 does not repeat."""
    server.answers += [DOWN, DOWN, ok()]
    with server.client(retry_total=1e-6) as project:
        project.until(time.monotonic() + 60).ping()
    assert len(server.requests) == 3


SUBMISSION = BatchSubmission("uppercase", [JobSubmission("j1")], batch_id=7)


ONCE_ONLY = {
    "create_batch": lambda project: project.create_batch("b", "uppercase"),
    "submit_batch": lambda project: project.submit_batch(SUBMISSION),
    "upload_files": lambda project: project.upload_files([]),
}


UNCLEAR = {
    "reset": scripted.reset(),
    "hang": scripted.hang(),
    "503": scripted.status(503),
    "empty": ok(b""),
    "project down": DOWN,
}


@pytest.mark.parametrize("rpc", ONCE_ONLY)
@pytest.mark.parametrize("fault", UNCLEAR)
def test_unrepeatable_rpc_is_sent_once(server, rpc, fault):
    server.answers.append(UNCLEAR[fault])
    options = hasty(fault, retry_total=60)
    with server.client(**options) as project, pytest.raises(RpcError) as caught:
        ONCE_ONLY[rpc](project)
    assert len(server.requests) == 1
    refused = isinstance(caught.value, ProjectError) and not isinstance(caught.value, ProjectDown)
    assert caught.value.may_be_running == (not refused)


def test_unrepeatable_rpc_is_sent_again_when_no_connection_came_about(caplog):
    caplog.set_level("DEBUG")
    with Scripted() as gone:
        url, host = gone.url, gone.host
    with WebRpcs(url, AUTHENTICATOR, options=replace(ONCE, retry_total=60)) as project:

        class CloseBeforeThePause(logging.Filter):
            def filter(self, record):
                if "trying again" in record.getMessage():
                    project.close()
                return True

        # What is closed in a pause ends at once.
        with caplog.filtering(CloseBeforeThePause()), pytest.raises(TransportError) as caught:
            project.create_batch("b", "uppercase")
        with pytest.raises(TransportError, match="closed"):
            project.ping()
    assert "trying again" in caplog.text
    assert not caught.value.may_be_running
    assert f"{host}, asked to make a batch: cannot connect (Connection refused)" in str(
        caught.value
    )


def test_unknown_host_is_reported(monkeypatch):
    # A proxy would be asked to find it.
    monkeypatch.setenv("no_proxy", "*")
    error = trouble("http://no.such.host.invalid/test/", "invalid, asked to .*: cannot connect")
    assert not error.may_be_running


def test_kept_connection_that_the_server_gave_up_does_not_show(server):
    server.answers += [scripted.then_closed(ok()), ok()]
    with server.client(retry_total=60) as project:
        project.ping()
        project.ping()
    assert [request.connection for request in server.requests] == [0, 1]


def test_unrepeatable_rpc_takes_no_used_connection(server):
    server.answers += [ok(), CREATED, CREATED, ok()]
    with server.client() as project:
        project.ping()
        assert project.create_batch("b", "uppercase") == 7
        assert project.create_batch("c", "uppercase") == 7
        project.ping()
    assert [request.connection for request in server.requests] == [0, 1, 2, 0]


@pytest.mark.parametrize(
    "play",
    [scripted.hang(), scripted.drip(http(200, PONG + b" " * 9999)), DOWN, scripted.reset()],
    ids=["hang", "drip", "project down", "reset"],
)
def test_deadline_bounds_everything(server, play):
    server.answers.append(play)
    with server.client(retry_total=60) as project, pytest.raises(RpcError):
        project.until(time.monotonic() + 0.6).ping()


@pytest.mark.long
def test_a_deadline_does_not_hold_for_the_next_reply_on_the_connection(server):
    deadline = time.monotonic() + 2

    def late(answer):
        answer.stop.wait(deadline + 0.1 - time.monotonic())
        return ok()(answer)

    server.answers += [ok(), late]
    with server.client() as project:
        project.until(deadline).ping()
        project.ping()
    assert [request.connection for request in server.requests] == [0, 0]


def test_nothing_is_sent_after_the_deadline(server):
    server.answers.append(ok())
    with server.client(retry_total=60) as project:
        with pytest.raises(TransportError, match="time limit was already reached") as caught:
            project.until(time.monotonic() - 1).ping()
        assert not caught.value.may_be_running
        project.ping()
    assert len(server.requests) == 1


def test_a_view_never_has_more_time_than_the_one_it_comes_from(server):
    server.answers.append(scripted.hang())
    with server.client(retry_total=60) as project:
        began = time.monotonic()
        with pytest.raises(TransportError):
            project.until(began + 0.3).until(began + 3600).ping()


def test_reply_that_drips_for_ever_ends_with_its_own_time(server):
    server.answers.append(scripted.drip(http(200, PONG + b" " * 9999)))
    with pytest.raises(TransportError, match="no answer in time"):
        ping(server, reply_timeout=0.5)


def test_request_larger_than_a_socket_takes_is_sent_whole(server):
    server.answers.append(ok(inside("submit_batch", "<batch_id>7</batch_id>")))
    jobs = [JobSubmission(f"job{index}", "x" * 500) for index in range(5000)]
    submission = BatchSubmission("uppercase", jobs, batch_id=7)
    with server.client() as project:
        assert project.submit_batch(submission) == 7
        assert len(server.requests[0].body) == project.request_size(submission)
    assert server.requests[0].xml.count(b"<job>") == 5000


def test_the_environment_is_searched_for_proxies_once_for_each_host(server, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("no_proxy", "localhost")
    server.answers.append(ok())
    transport = HttpTransport(ONCE)
    url, direct = "http://boinc.example.edu/test/", server.url
    with (
        WebRpcs(url, AUTHENTICATOR, options=ONCE, transport=transport) as proxied,
        WebRpcs(direct, AUTHENTICATOR, options=ONCE, transport=transport) as straight,
    ):
        for _ in range(2):
            proxied.ping()
            straight.ping()
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
            monkeypatch.delenv("no_proxy", raising=False)
    paths = [request.path.partition("submit_rpc")[0] for request in server.requests]
    assert paths == [url, "/test/"] * 2


def test_a_project_that_is_closed_closes_no_other_one_on_the_same_transport(server):
    server.answers.append(ok())
    transport = HttpTransport(ONCE)
    for _ in range(2):
        with WebRpcs(server.url, AUTHENTICATOR, options=ONCE, transport=transport) as project:
            project.ping()
    assert len({request.connection for request in server.requests}) == 2


def test_one_project_serves_many_threads(server):
    server.answers.append(ok())
    with server.client() as project, ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(project.ping) for _ in range(80)]:
            future.result()
    assert len(server.requests) == 80
    assert len({request.connection for request in server.requests}) <= 8
