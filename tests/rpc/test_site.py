"""Pages for programs: what is read of them, what is sent, and what a bad network does to them."""

import hashlib
import logging

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import (
    BadRequest,
    ProtocolError,
    RpcError,
    TransportError,
)
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.site import about, apps, key_of
from boinc_gahp.rpc.types import AppInfo, AppVersionInfo, ProjectInfo
from tests.contract.replay import Canned
from tests.rpc import scripted
from tests.rpc.canned import URL
from tests.rpc.scripted import AUTHENTICATOR, Scripted, http, ok, raw

ONCE = ClientOptions(connect_timeout=30, read_timeout=30, retry_total=0)
EMAIL, PASSWORD = "Ada@Example.edu", "correct horse"
HASH = hashlib.md5(b"correct horseada@example.edu").hexdigest()

PROLOG = '<?xml version="1.0" encoding="ISO-8859-1" ?>\n'
WARNING = "<br />\n<b>Warning</b>:  Undefined variable $x in <b>/a.inc</b> on line <b>7</b><br />\n"
APPS = """<app_versions>
<application>
    <user_friendly_name>R&D: a<b, folding, ß</user_friendly_name>
    <name>fold</name>
    <id>3</id>
        <beta/>
    <version>
        <platform_short>x86_64-pc-linux-gnu</platform_short>
        <platform_long>Linux running on an AMD x86_64 or Intel EM64T CPU</platform_long>
        <version_num>102</version_num>
        <plan_class>docker</plan_class>
        <date>1 Aug 2026, 12:00:00 UTC</date>
        <date_unix>1785585600</date_unix>
        <beta/>
    </version>
    </application>
<application>
    <user_friendly_name></user_friendly_name>
    <name>none</name>
    <id>4</id>
    </application>
</app_versions>
"""
LINUX = ("x86_64-pc-linux-gnu", "Linux running on an AMD x86_64 or Intel EM64T CPU")
VERSION = AppVersionInfo(*LINUX, 102, "docker", 1785585600.0, beta=True)
FOUND = (
    AppInfo(3, "fold", "R&D: a<b, folding, ß", beta=True, versions=(VERSION,)),
    AppInfo(4, "none", "", beta=False),
)
CONFIG = """<project_config>
    <name>Folding & Co</name>
    <master_url>http://boinc.example.edu/test/</master_url>
    <web_rpc_url_base>https://boinc.example.edu/test/</web_rpc_url_base>
<server_version>0.9.0</server_version>
    <platforms>
            <platform><platform_name>x</platform_name></platform>
    </platforms>
</project_config>"""
ACCOUNT = f"<account_out>\n<authenticator>{AUTHENTICATOR}</authenticator>\n</account_out>\n"


def site(text, url=URL, *, chunk=65536):
    canned = Canned((PROLOG + text).encode(), chunk=chunk)
    return WebRpcs(url, AUTHENTICATOR, options=ONCE, transport=canned)


@pytest.mark.parametrize("chunk", [65536, 1], ids=["whole", "bytewise"])
@pytest.mark.parametrize("before", ["", WARNING], ids=["plain", "after a warning of PHP"])
def test_apps_and_their_versions_are_read(before, chunk):
    assert apps(site(before + APPS, chunk=chunk)) == FOUND


def test_a_project_without_apps_has_none():
    assert apps(site("<app_versions>\n</app_versions>\n")) == ()


def test_a_project_tells_its_name_and_addresses():
    assert about(site(WARNING + CONFIG)) == ProjectInfo(
        "Folding & Co", "http://boinc.example.edu/test/", "https://boinc.example.edu/test/"
    )


@pytest.mark.parametrize(
    "text",
    [
        APPS.replace("<name>fold</name>", ""),
        APPS.replace("<id>3</id>", "<id>three</id>"),
        APPS.replace("102", "9" * 40),
        APPS.replace("1785585600", "-5"),
        APPS.replace("fold</name>", f"{'x' * 300}</name>"),
    ],
    ids=["no name", "no id", "a huge version", "a negative time", "a long name"],
)
def test_a_list_with_something_wrong_is_refused(text):
    with pytest.raises(ProtocolError, match="incomplete or wrong"):
        apps(site(text))


@pytest.mark.parametrize("key", ["", "two words", "ümlaut", "x" * 300])
def test_a_key_that_is_none_is_refused_and_not_told(key):
    reply = ACCOUNT.replace(AUTHENTICATOR, key)
    with pytest.raises(ProtocolError) as caught:
        key_of(site(reply, "https://a.example/"), "a", "b")
    assert not key or key not in str(caught.value)


@given(st.data())
def test_a_reply_that_is_cut_or_mixed_up_is_apps_or_an_error(data):
    text = (PROLOG + APPS).encode()
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    between = data.draw(st.binary(max_size=20))
    mixed = text[:begin] + between + text[end:]
    try:
        found = apps(WebRpcs(URL, AUTHENTICATOR, options=ONCE, transport=Canned(mixed)))
    except RpcError:
        return
    assert len(found) <= 2
    assert all(each.name for each in found) or between or begin < end


def lookup(project):
    return key_of(project, EMAIL, PASSWORD)


def test_the_log_shows_neither_the_password_nor_what_is_made_of_it(server, caplog):
    caplog.set_level(logging.DEBUG)
    server.answers.append(ok((PROLOG + ACCOUNT).encode()))
    with server.client() as project:
        found = lookup(project)
    (request,) = server.requests
    assert f"passwd_hash={HASH}" in request.path
    assert "lookup_account" in caplog.text
    for secret in (HASH, PASSWORD, EMAIL, AUTHENTICATOR, "Ada%40"):
        assert secret not in caplog.text
    assert AUTHENTICATOR not in repr((found, project))


def test_a_page_that_echoes_what_was_sent_is_quoted_without_it(server):
    server.answers.append(scripted.status(403, f"<title>no {HASH}</title>".encode()))
    with server.client() as project, pytest.raises(TransportError) as caught:
        lookup(project)
    assert HASH not in str(caught.value)


def test_no_password_is_sent_in_clear_to_another_machine():
    canned = Canned(b"")
    project = WebRpcs(URL, AUTHENTICATOR, options=ONCE, transport=canned)
    with pytest.raises(BadRequest, match="use https"):
        lookup(project)
    assert canned.sent == []


def test_only_the_list_of_apps_is_asked_for_with_the_cookie_of_the_account(server):
    server.answers += [ok((PROLOG + APPS).encode()), ok((PROLOG + CONFIG).encode())]
    with server.client() as project:
        apps(project)
        about(project)
    listed, told = server.requests
    assert listed.headers["cookie"] == f"auth={AUTHENTICATOR}"
    assert listed.path == "/test/apps.php?xml=1"
    assert "cookie" not in told.headers


def test_the_cookie_does_not_follow_to_another_server(server):
    with Scripted() as other:
        server.answers.append(raw(http(302, b"", Location=f"{other.url}apps.php")))
        other.answers.append(ok((PROLOG + APPS).encode()))
        with (
            server.client() as project,
            pytest.raises(TransportError, match="redirects to another server"),
        ):
            apps(project)
        assert other.requests == []


@pytest.mark.parametrize(
    ("url", "is_private"),
    [
        ("https://a.example/", True),
        ("http://a.example/", False),
        ("http://localhost:8080/", True),
        ("http://127.0.0.1/", True),
        ("http://127.1.2.3:80/", True),
        ("http://[::1]:8080/test/", True),
        ("http://[2001:db8::1]/", False),
        ("http://localhost.example/", False),
        ("http://10.0.0.1/", False),
    ],
)
def test_only_https_and_this_machine_are_private(url, *, is_private):
    assert WebRpcs(url, "").is_private is is_private
