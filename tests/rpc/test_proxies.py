"""Behind a proxy: what is lost on the way may have been carried out, and is not sent twice."""

import base64

import pytest

from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from tests.helpers import certified
from tests.rpc import scripted
from tests.rpc.canned import trouble
from tests.rpc.scripted import AUTHENTICATOR, Scripted, ok, tunnel

UNREACHABLE = "the proxy cannot be reached or refuses"
PLAIN, SECURE = "http://boinc.example.edu/test/", "https://boinc.example.edu/test/"


def behind(proxy, retry=20, **more):
    """Return options with a :class:`Scripted` as the proxy."""
    return ClientOptions(
        read_timeout=30, retry_total=retry, proxy=f"http://127.0.0.1:{proxy.port}", **more
    )


@pytest.mark.parametrize("lost", [scripted.goodbye(), scripted.reset()], ids=["closed", "reset"])
def test_create_batch_whose_answer_a_proxy_loses_is_sent_once(server, lost):
    server.answers.append(lost)
    error = trouble(PLAIN, "connection through the proxy failed", behind(server))
    assert [request.rpc for request in server.requests] == ["create_batch"]
    assert error.may_be_running
    assert error.passes


def test_a_question_whose_answer_a_proxy_loses_is_asked_again(server):
    server.answers += [scripted.goodbye(), ok()]
    with WebRpcs(PLAIN, AUTHENTICATOR, options=behind(server)) as project:
        project.ping()
    assert [request.path.partition("submit")[0] for request in server.requests] == [PLAIN] * 2


def test_in_a_tunnel_what_is_lost_may_be_running(server, tmp_path):
    context, bundle = certified(tmp_path, "boinc.example.edu")
    with Scripted(context=context) as safe:
        safe.answers.append(scripted.goodbye())
        server.answers.append(tunnel(safe.port))
        options = behind(server, ca_bundle=str(bundle))
        error = trouble(SECURE, "the connection", options)
        assert [request.rpc for request in safe.requests] == ["create_batch"]
    assert error.may_be_running


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_a_proxy_may_be_reached_by_tls_and_its_login_goes_no_further(tmp_path, scheme):
    context, bundle = certified(tmp_path, "boinc.example.edu", "localhost")
    with Scripted(context=context) as proxy, Scripted(context=context) as safe:
        proxy.answers.append(tunnel(safe.port))
        safe.answers.append(ok())
        way = f"{scheme}://alice:sesame@localhost:{proxy.port}"
        options = ClientOptions(retry_total=0, proxy=way, ca_bundle=str(bundle))
        with WebRpcs(SECURE, AUTHENTICATOR, options=options) as project:
            project.ping()
        login = base64.b64encode(b"alice:sesame").decode()
        assert proxy.requests[0].headers["proxy-authorization"] == f"Basic {login}"
        assert "proxy-authorization" not in safe.requests[0].headers


def test_a_proxy_that_cannot_be_reached_is_tried_again_with_nothing_sent():
    with Scripted() as gone:
        options = behind(gone, 1.2)
    assert not trouble(PLAIN, UNREACHABLE, options).may_be_running


@pytest.mark.parametrize("refusal", [403, 407, 502])
def test_a_proxy_that_refuses_to_connect_has_sent_nothing(server, refusal):
    server.answers += [scripted.status(refusal), ok()]
    assert not trouble(SECURE, UNREACHABLE, behind(server, 0)).may_be_running


def test_a_proxy_that_is_none_for_http_is_named(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://alice:sesame@127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    error = trouble(PLAIN, "unsupported scheme socks5")
    assert not error.passes
    assert "sesame" not in str(error)


def test_a_proxy_gets_its_login_needs_no_scheme_and_netrc_is_not_read(
    server, monkeypatch, tmp_path
):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine boinc.example.edu login me password sesame\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", f"alice:s%40same@127.0.0.1:{server.port}")
    monkeypatch.setenv("no_proxy", "")
    server.answers.append(ok())
    with WebRpcs(PLAIN, AUTHENTICATOR) as project:
        project.ping()
    (request,) = server.requests
    assert request.path == f"{PLAIN}submit_rpc_handler.php"
    login = base64.b64encode(b"alice:s@same").decode()
    assert request.headers["proxy-authorization"] == f"Basic {login}"
    assert "authorization" not in request.headers
