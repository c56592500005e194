"""The project, or who is on the way to it, wants the authenticator sent to another server."""

import threading
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, strategies as st
from urllib3.util import parse_url

from boinc_gahp.errors import TransportError
from boinc_gahp.rpc._caller import followed
from boinc_gahp.rpc.types import BatchSubmission, JobSubmission, UploadFile
from tests.rpc.scripted import AUTHENTICATOR, Scripted, ok, status

HERE = "http://boinc.example.edu/test/submit_rpc_handler.php"
#: ``{evil}`` and ``{host}`` are host and port of another server and of the project.
TRICKS = [
    *("http://{evil}\\@{host}/", "http://{evil}\\\\@{host}/", "\\\\{evil}/", "/\\{evil}/"),
    *("//{evil}/", "///{evil}/", "http:\\\\{evil}/", "http://{host}@{evil}/"),
    *(
        "http://{host}:80@{evil}/",
        "http://a:b@{host}/",
        "http://@{host}/",
        "http://{evil}#@{host}/",
    ),
    *("http://{evil}?@{host}/", "http://{host}\t@{evil}/", "ht\ttp://{evil}/"),
    *("http://{evil} .{host}/", "http://{evil}\x0b@{host}/", "http://{host}\x7f/"),
    *("http:// {host}/", "http://{host}%2f@{evil}/", "http://{host}.evil.example/"),
    *("javascript:alert(1)", "file:///etc/passwd", "https://{evil}/"),
]


def filled(location, server, evil):
    return location.format(host=server.host, evil=evil.host)


@pytest.mark.parametrize("location", TRICKS)
def test_no_location_takes_the_authenticator_to_another_server(server, location):
    with Scripted() as evil:
        evil.answers.append(ok())
        location = filled(location, server, evil).encode().decode("latin-1")
        server.answers += [status(302, Location=location.replace("\n", ""))] * 2
        with server.client(connect_timeout=5, read_timeout=5) as project:
            for ask in (project.query_batches, lambda: project.result_file("r", 0)):
                with pytest.raises(TransportError) as caught:
                    ask()
                assert not caught.value.passes
                assert not caught.value.may_be_running
                assert caught.value.__cause__ is None
                assert AUTHENTICATOR not in str(caught.value)
                assert str(caught.value).isprintable()
        assert evil.requests == []


ONE_JOB = BatchSubmission("a", [JobSubmission("j")], batch_id=1)
EMPTY = "d41d8cd98f00b204e9800998ecf8427e"
#: An RPC of each kind, and the method's arguments: those that are asked again and those that are
#: not, one before which the project's clock is asked, an upload, and an output.
KINDS = {
    "query_batches": {},
    "submit_batch": {"submission": ONE_JOB},
    "set_expire_time": {"expire_time": 1, "batch_id": 1},
    "iter_jobs": {"batch_id": 1},
    "upload_files": {"files": [UploadFile("f", "/dev/null", 0, EMPTY)]},
    "result_file": {"result_name": "r", "file_num": 0},
}


@pytest.mark.parametrize("rpc", KINDS)
def test_a_broken_location_is_an_error_of_each_kind_of_rpc(server, rpc):
    server.answers.append(status(301, Location=f"http://[::1/?auth_str={AUTHENTICATOR}"))
    invalid = pytest.raises(TransportError, match="redirects to an invalid URL")
    with server.client(connect_timeout=5, read_timeout=5) as project, invalid as caught:
        found = getattr(project, rpc)(**KINDS[rpc])
        list(found)  # of iter_jobs
    assert server.host in str(caught.value)
    assert AUTHENTICATOR not in str(caught.value)
    # A ping comes first, for the project's clock, where a time is sent.
    assert len(server.requests) == (2 if rpc == "set_expire_time" else 1)


def test_an_endless_body_of_a_redirect_is_not_read(server):
    head = b"HTTP/1.1 302 Found\r\nLocation: /x.php\r\nTransfer-Encoding: chunked\r\n\r\n"
    ended = threading.Event()

    def endless(answer):
        connection, stop = answer.connection, answer.stop
        try:
            connection.sendall(head)
            while not stop.is_set():
                connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        except OSError:
            ended.set()
        return False

    server.answers += [endless, ok()]
    with server.client(connect_timeout=5, read_timeout=5) as project:
        project.ping()
        assert ended.wait(60)
    assert [request.path for request in server.requests][1:] == ["/x.php"]


HOSTS = ["boinc.example.edu", "BOINC.example.edu", "evil.example", "[::1]", "127.0.0.1"]
PIECES = st.one_of(
    st.sampled_from(HOSTS),
    st.sampled_from(["http", "https", "://", ":", "//", "/", "\\", "@", "?", "#", ":80", ":443"]),
    st.sampled_from([":8080", ":99999", ".", "..", "%", "%2f", "%40", " ", "\t", "\r", "\n", "\0"]),
    st.sampled_from(
        ["\uff0f", "\uff20", "\u2100", "\xad", "a", "x.php", "a=b", "&", "[", "]", "<"]
    ),
    st.text(max_size=3),
)
URLS = [
    HERE,
    "https://boinc.example.edu/test/job_file.php",
    "http://boinc.example.edu:8080/test/get_output.php?cmd=x&auth_str=y",
    "http://[::1]:8080/test/x.php",
]


@example(["http://evil.example\\@boinc.example.edu/"], HERE)
@example(["http://boinc.example.edu"], HERE)
@given(st.lists(PIECES, max_size=12), st.sampled_from(URLS))
def test_whatever_a_location_says_is_the_same_server_or_its_https_or_refused(pieces, url):
    try:
        there = followed(307, "".join(pieces), url)
    except ValueError as refused:
        assert "auth_str" not in str(refused)  # noqa: PT017  (either outcome is right)
        assert str(refused).isprintable()  # noqa: PT017
        return
    here = urlsplit(url)
    # What compares, what connects and what the standard library makes of it agree.
    for found in (urlsplit(there), parse_url(there)):
        assert (found.hostname or "").strip("[]") == (here.hostname or "").strip("[]")
        port = found.port or {"http": 80, "https": 443}[found.scheme or ""]
        mine = here.port or {"http": 80, "https": 443}[here.scheme]
        upgrade = (here.scheme, found.scheme, port) == ("http", "https", 443)
        assert upgrade or (found.scheme, port) == (here.scheme, mine)
    assert "@" not in urlsplit(there).netloc
    assert there != url


@pytest.mark.parametrize(
    ("location", "there"),
    [
        ("x.php?a=b", "http://boinc.example.edu/test/x.php?a=b"),
        ("../x.php", "http://boinc.example.edu/x.php"),
        ("http://BOINC.example.edu:80/x#y", "http://boinc.example.edu:80/x"),
        ("https://boinc.example.edu:443/x", "https://boinc.example.edu:443/x"),
    ],
)
def test_the_same_server_and_its_https_are_followed(location, there):
    assert followed(308, location, HERE) == there


@pytest.mark.parametrize(
    ("url", "location"),
    [
        (HERE, "https://boinc.example.edu:8443/x"),
        (HERE, "http://boinc.example.edu:8080/x"),
        (HERE, "http://boinc.example.edu./x"),
        (HERE, HERE),
        (HERE, ""),
        ("https://boinc.example.edu/x", "http://boinc.example.edu/x"),
        ("https://boinc.example.edu/x", "https://boinc.example.edu:80/x"),
        ("https://boinc.example.edu:8443/x", "https://boinc.example.edu/x"),
    ],
)
def test_another_server_of_the_host_is_not(url, location):
    with pytest.raises(ValueError, match=r"check the project's URL|another server"):
        followed(301, location, url)
