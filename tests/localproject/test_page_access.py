"""Who may see the project's page: whoever has its address with the token."""

import logging
import stat

import pytest
import requests

from boinc_gahp.localproject.server.application import make_app
from boinc_gahp.localproject.web.page import page_address
from tests.localproject.visitor import found

PAGES = ("", "batches/1", "jobs/1")
FILES = ("instances/1/outputs/0",)


@pytest.fixture
def batch(bench, visitor):
    """The submitter's batch, whose one job is done."""
    batch_id = visitor.batch("b")
    bench.transition()
    bench.answer(bench.send())
    bench.settle()
    return batch_id


def token(bench):
    return page_address(bench.core).partition("?token=")[2]


@pytest.mark.parametrize("given", ["", "?token=", "?token=wrong", "?token=%C3%BC", "?token=%ff"])
def test_nothing_is_shown_to_who_does_not_have_the_token(given, bench, visitor, batch):
    for path in (*PAGES, *FILES):
        answer = requests.get(visitor.core.url + path + given, timeout=60)
        assert answer.status_code == 401, path
        assert "boinc_gahp local-project run printed" in answer.text
        assert "uppercase" not in answer.text
        assert str(bench.directory) not in answer.text
        assert token(bench) not in answer.text


def test_the_token_is_kept_in_a_cookie_and_not_in_the_address(bench):
    client = make_app(bench.core).test_client()
    answer = client.get(f"/test/?token={token(bench)}", base_url="http://127.0.0.1")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/test/")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("local_project_")
    for part in ("; HttpOnly", "; SameSite=Lax", "; Path=/test/"):
        assert part in cookie
    assert client.get("/test/", base_url="http://127.0.0.1").status_code == 200


def test_the_token_is_the_owners_alone_and_stays(bench, visitor):
    assert stat.S_IMODE((bench.directory / "page_token").stat().st_mode) == 0o600
    [(name, value)] = visitor.session.cookies.items()
    client = make_app(bench.core).test_client()
    client.set_cookie(name, value, path="/test/", domain="127.0.0.1")
    assert client.get("/test/", base_url="http://127.0.0.1").status_code == 200


def test_a_token_file_that_was_emptied_lets_nobody_in(bench, visitor):
    (bench.directory / "page_token").write_text("")
    assert requests.get(f"{visitor.core.url}?token=", timeout=60).status_code == 401
    assert visitor.get().status_code == 401


def test_no_authenticator_is_in_a_page_and_no_token_in_a_log(bench, visitor, batch, caplog):
    caplog.set_level(logging.DEBUG, "boinc_gahp")
    [secret] = bench.rows("SELECT authenticator FROM user WHERE name = 'submitter'")
    requests.get(page_address(bench.core), timeout=60)
    for path in PAGES:
        answer = visitor.get(path)
        assert str(secret["authenticator"]) not in answer.text + str(answer.headers), path
    assert token(bench) not in caplog.text


# What every answer says to browsers.


def test_pages_hold_nothing_that_the_policy_forbids_or_that_comes_from_elsewhere(visitor, batch):
    for path in PAGES:
        page = visitor.page(path)
        assert found(page, "//@style | //style | //script/text()") == [], path
        assert found(page, "//@*[starts-with(name(), 'on')]") == [], path
        sources = found(page, "//@src | //link/@href | //form/@action")
        assert all(source.startswith("/test/") for source in sources), path
        assert found(page, "//form[@method != 'get']") == [], path
        # Other answers may not even load what is our own.
        policy = visitor.get(path).headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'; object-src 'none'; "), path
