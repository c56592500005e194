"""An attacker lets a name of theirs point to this machine, and reads the project through a browser.

For the browser their page and the project are then one site (DNS rebinding).
"""

import errno
import socket
from urllib.parse import urlsplit

import pytest
import requests
from hypothesis import example, given, strategies as st
from werkzeug.test import create_environ, run_wsgi_app

from boinc_gahp.localproject.backend.create_work import stage_file
from boinc_gahp.localproject.core import names_of
from boinc_gahp.localproject.server.application import make_app

PATHS = ("", "result.php", "download/x/in.dat", "get_output.php", "nosuch")
THEIRS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.7", "", "[")
OURS = ("127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "127.0.0.2")


@pytest.fixture(scope="module", autouse=True)
def _staged(project):
    stage_file(project.core, b"secret input", "in.dat")


def _answers(project, host):
    """What a page, an RPC, a file and errors answer who asks under a name."""
    found = {}
    url = project.url
    port = urlsplit(url).port
    with requests.Session() as session:
        for path in PATHS:
            for headers in ({"Host": host}, {"Host": f"{host}:{port}"}):
                answer = session.get(url + path, headers=headers, timeout=20)
                found[f"{path} {headers}"] = (answer.status_code, answer.text)
        for path in ("submit_rpc_handler.php", "job_file.php"):
            answer = session.post(
                url + path, data={"request": "<ping> </ping>"}, headers={"Host": host}, timeout=20
            )
            found[path] = (answer.status_code, answer.text)
    return found


def test_a_project_listens_at_one_address_of_this_machine_alone(project):
    port = urlsplit(project.url).port
    for address, expected in (("127.0.0.1", 0), ("127.0.0.2", errno.ECONNREFUSED)):
        with socket.socket() as probe:
            assert probe.connect_ex((address, port)) == expected


def test_nothing_is_answered_under_another_name(project):
    for host in THEIRS:
        for what, (status, text) in _answers(project, host).items():
            assert status in (400, 421), (host, what, text)
            assert "secret" not in text, (host, what)
            assert "<success>" not in text, (host, what)
            if status == 421:
                assert "--name NAME" in text, (host, what)


def test_all_is_answered_under_names_of_this_machine(project):
    for host in OURS:
        answers = _answers(project, host)
        assert {status for status, _ in answers.values()} <= {200, 404}, host
        assert "<success>1</success>" in answers["submit_rpc_handler.php"][1], host


@example(host="[")
@given(host=st.text(st.characters(min_codepoint=33, max_codepoint=255), min_size=1))
def test_no_header_at_all_is_taken_for_a_name_of_this_machine(project, host):
    # Werkzeug's test client refuses some hosts itself.
    asked = create_environ("/test/get_project_config.php") | {"HTTP_HOST": host}
    _, status, _ = run_wsgi_app(make_app(project.core), asked)
    assert status[:3] in ("400", "421") or "localhost" in host.lower() or "127." in host


def test_a_project_for_others_is_asked_by_its_addresses_and_its_own_name():
    names = names_of("0.0.0.0", ["grid.example"])
    for name in ("192.0.2.7", "2001:db8::1", "127.0.0.1", socket.gethostname(), "grid.example."):
        assert name in names, name
    for name in ("evil.example", "192.0.2.7.evil.example", ""):
        assert name not in names, name
