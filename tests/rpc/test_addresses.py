"""Where requests go: addresses, redirects, certificates."""

import re
import socket
import ssl
import time
import traceback
from dataclasses import replace

import pytest
import trustme

from boinc_gahp.errors import BadRequest, ProtocolError, TransportError
from boinc_gahp.rpc._transport import trusted
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from tests.rpc import scripted
from tests.rpc.canned import ask, inside, trouble
from tests.rpc.scripted import AUTHENTICATOR, PONG, Scripted, http, ok, status, tunnel


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/test/",
        "http:///test/",
        "http://user:s3same@h/",
        "http://h/test/?a=b",
        "file:///etc/passwd",
    ],
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(BadRequest, match="is not a project's URL") as caught:
        WebRpcs(url, AUTHENTICATOR)
    assert "s3same" not in str(caught.value)


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_redirect_on_the_same_host_is_followed_as_a_post_with_a_warning(server, code, caplog):
    server.answers += [
        status(code, Location="/elsewhere/submit_rpc_handler.php"),
        ok(inside("create_batch", "<batch_id>3</batch_id>")),
    ]
    ask(server.url)
    first, second = server.requests
    assert second.path == "/elsewhere/submit_rpc_handler.php"
    assert (second.method, second.xml) == ("POST", first.xml)
    assert "redirects to" in caplog.text
    assert "/elsewhere/submit_rpc_handler.php: set the project's URL accordingly" in caplog.text


@pytest.mark.parametrize(
    ("code", "location", "says"),
    [
        (302, "http://localhost:1/x.php", "redirects to another server, http://localhost:1/x.php"),
        (303, "/x.php", "answered HTTP 303"),
        (301, "", "answered HTTP 301"),
        (304, "/x.php", "answered HTTP 304"),
    ],
)
def test_any_other_redirect_is_an_error(server, code, location, says):
    server.answers.append(status(code, Location=location))
    error = trouble(server.url, re.escape(says), ClientOptions(retry_total=20))
    assert server.host in str(error)
    assert not error.may_be_running
    assert len(server.requests) == 1


def test_redirects_without_end_are_an_error(server):
    server.answers += [status(307, Location=f"/{number}") for number in range(9)]
    trouble(server.url, "redirects more than 5 times")
    assert len(server.requests) == 6


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def bundle(authority, tmp_path):
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def secure(authority, name="localhost"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    server = Scripted(context=context)
    server.answers.append(ok())
    return server


def options(bundle):
    return ClientOptions(connect_timeout=5, read_timeout=5, retry_total=20, ca_bundle=bundle)


def through(proxy, bundle=None):
    return ClientOptions(retry_total=0, ca_bundle=bundle, proxy=f"http://127.0.0.1:{proxy.port}")


def over(url, options):
    return WebRpcs(url, AUTHENTICATOR, options=options)


def test_certificate_of_the_bundle_is_trusted(authority, bundle):
    with secure(authority) as server, over(server.url, options(bundle)) as project:
        project.ping()
        project.ping()
        assert [request.connection for request in server.requests] == [0, 0]


@pytest.mark.parametrize("case", ["no bundle", "another authority", "another host"])
def test_certificate_is_checked(authority, bundle, tmp_path, case):
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    chosen = {"no bundle": None, "another authority": str(other), "another host": bundle}[case]
    name = "boinc.example.edu" if case == "another host" else "localhost"
    with secure(authority, name) as server:
        error = trouble(server.url, "its certificate is not trusted", options(chosen))
        assert server.requests == []
    assert "set ca_bundle" in str(error)
    assert not error.may_be_running


def test_a_certificate_of_the_systems_store_is_trusted(authority, bundle, monkeypatch):
    # Where OpenSSL, and so the system's store, is looked for.
    monkeypatch.setenv("SSL_CERT_FILE", bundle)
    with secure(authority) as server, over(server.url, options(None)) as project:
        server.answers.append(ok(inside("create_batch", "<batch_id>3</batch_id>")))
        project.ping()
        # On a connection of its own.
        assert project.create_batch("b", "uppercase") == 3


def test_where_python_knows_of_no_system_store_certifis_is_used(authority, tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "missing"))
    assert trusted(None).cert_store_stats()["x509_ca"] > 50
    with secure(authority) as server:
        trouble(server.url, "its certificate is not trusted", options(None))


def test_http_that_is_sent_on_to_https_is_not_asked_again(server, authority, bundle):
    with secure(authority, "boinc.example.edu") as safe:
        # A proxy, so that the port can be 443.
        location = "https://boinc.example.edu/test/submit_rpc_handler.php"
        server.answers += [status(301, Location=location), tunnel(safe.port)]
        with over("http://boinc.example.edu/test/", through(server, bundle)) as project:
            seen = [project.https_url]
            project.ping()
            seen.append(project.https_url)
            assert seen == [None, "https://boinc.example.edu/test/"]
            with pytest.raises(ProtocolError):
                project.create_batch("b", "uppercase")
            with pytest.raises(ProtocolError):
                project.until(time.monotonic() + 60).query_batches()
        rpcs = ["ping", "create_batch", "query_batches"]
        assert [request.rpc for request in safe.requests] == rpcs
    in_clear = [request for request in server.requests if request.method != "CONNECT"]
    assert [request.rpc for request in in_clear] == ["ping"]


def test_https_where_http_is_spoken_is_reported(server):
    server.answers.append(ok())
    url = server.url.replace("http:", "https:")
    trouble(url, r"no secure connection .* \(.*number\): .* should begin with http:", options(None))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        said = r"no secure connection .* \(The handshake .*should begin with http:"
        error = trouble(
            url, said, ClientOptions(connect_timeout=0.2, read_timeout=0.2, retry_total=0)
        )
    assert not error.may_be_running


def test_https_goes_through_a_proxy_without_its_seeing_anything(server, authority, bundle):
    with secure(authority, "boinc.example.edu") as safe:
        server.answers.append(tunnel(safe.port))
        with over("https://boinc.example.edu/test/", through(server, bundle)) as project:
            project.ping()
            project.ping()
        assert [request.connection for request in safe.requests] == [0, 0]
    (connect,) = server.requests
    assert (connect.method, connect.path) == ("CONNECT", "boinc.example.edu:443")


def test_a_proxy_may_be_asked_over_tls(authority, bundle):
    with secure(authority) as proxy:
        tls = replace(through(proxy, bundle), proxy=f"https://localhost:{proxy.port}")
        with over("http://boinc.example.edu/test/", tls) as project:
            project.ping()
    assert proxy.requests[0].path == "http://boinc.example.edu/test/submit_rpc_handler.php"


@pytest.mark.parametrize("who", ["the proxy", "the project"])
def test_a_deadline_holds_in_a_tunnel_and_while_one_is_made(server, authority, bundle, who):
    drip = scripted.drip(http(200, PONG + b" " * 9000))  # minutes, and then it is a good answer
    url = "https://boinc.example.edu/test/"
    with secure(authority, "boinc.example.edu") as safe:
        safe.answers[0] = drip
        server.answers.append(drip if who == "the proxy" else tunnel(safe.port))
        asked = server if who == "the proxy" else safe
        # On a busy machine a deadline may be over before so much as a request is sent.
        for seconds in (0.6, 6.0, 60.0):
            late = pytest.raises(TransportError, match=r"in time|time limit")
            with over(url, through(server, bundle)) as project, late:
                project.until(time.monotonic() + seconds).ping()
            if asked.requests:
                break
        assert asked.requests
        assert who == "the project" or not safe.requests


def test_proxy_whose_url_cannot_be_read_is_reported_without_its_login():
    wrong = ClientOptions(retry_total=60, proxy="http://user:s3same@127.0.0.1:99999")
    error = trouble("https://boinc.example.edu/", "a URL is wrong", wrong)
    assert not error.passes
    assert "s3same" not in "".join(traceback.format_exception(error))
