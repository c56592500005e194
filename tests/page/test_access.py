"""Who may see the page: whoever has its address, on this machine."""

import errno
import logging
import socket
from urllib.parse import urlsplit

import pytest
import requests

from boinc_gahp.cli.local_project import local_page
from tests.attacks.test_name_that_points_here import THEIRS
from tests.page.visitor import found

PAGES = ("", "0/1", "0/1/1", "0/1/1/outputs", "more/Hosts", "more/Back end")
FILES = ("0/1/1/outputs/0", "static/page.js")


@pytest.fixture
def batch(bench, visitor):
    """The submitter's batch, whose one job is done."""
    batch_id = visitor.batch("b")
    bench.transition()
    bench.answer(bench.send())
    bench.settle()
    return batch_id


@pytest.mark.parametrize("given", ["", "wrong/", "%C3%BC/", "%ff/", "//", "{half}/", "{token}x/"])
def test_nothing_is_shown_to_who_does_not_have_the_token(given, visitor, batch):
    at, token = visitor.address.rstrip("/").rsplit("/", 1)
    for path in (*PAGES, *FILES):
        address = f"{at}/{given.format(half=token[:12], token=token)}{path}"
        answer = requests.get(address, timeout=60)
        assert answer.status_code == 403, address
        assert "Open the page by its whole address" in answer.text
        assert token not in answer.text + str(answer.headers)


def test_nothing_is_answered_under_another_name(visitor, batch):
    for path in (*PAGES, *FILES):
        for host in THEIRS:
            assert visitor.get(path, Host=host).status_code in (400, 421), (path, host)
        assert visitor.get(path, Host="localhost:99").status_code == 200, path


def test_only_this_machine_reaches_it(visitor):
    port = urlsplit(visitor.address).port
    for address, expected in (("127.0.0.1", 0), ("127.0.0.2", errno.ECONNREFUSED)):
        with socket.socket() as probe:
            assert probe.connect_ex((address, port)) == expected


def test_each_start_makes_another_address(site, visitor):
    with local_page(site) as address:
        assert address.split("/")[3] != visitor.address.split("/")[3]
        assert len(address.split("/")[3]) >= 32


def test_the_page_only_shows(visitor, batch):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in (*PAGES, *FILES):
            answer = visitor.session.request(method, visitor.address + path, timeout=60)
            assert answer.status_code == 405, (method, path)


def test_no_authenticator_is_in_a_page_and_no_token_in_a_log(bench, visitor, batch, caplog):
    caplog.set_level(logging.DEBUG)
    [secret] = bench.rows("SELECT authenticator FROM user WHERE name = 'submitter'")
    for path in PAGES:
        answer = visitor.get(path)
        assert str(secret["authenticator"]) not in answer.text + str(answer.headers), path
        assert "Set-Cookie" not in answer.headers
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    told = [record.getMessage() for record in caplog.records if record.name.startswith("boinc")]
    assert not [text for text in told if visitor.address.split("/")[3] in text]


def test_pages_hold_nothing_that_the_policy_forbids_or_that_comes_from_elsewhere(visitor, batch):
    own = "/" + visitor.address.split("/", 3)[3]
    for path in PAGES:
        page = visitor.page(path)
        assert found(page, "//@style | //style | //script/text()") == [], path
        assert found(page, "//@*[starts-with(name(), 'on')]") == [], path
        sources = found(page, "//@src | //link/@href | //form/@action")
        assert all(source.startswith(own) for source in sources), path
        assert found(page, "//form[@method != 'get']") == [], path
        headers = visitor.get(path).headers
        assert headers["Content-Security-Policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
