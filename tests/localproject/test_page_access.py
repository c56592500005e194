"""Who may see the project's page and act on it, and what other sites' pages can't do with it."""

from __future__ import annotations

import logging
import stat
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.localproject.accounts import add_user
from boinc_gahp.localproject.server.application import make_app
from boinc_gahp.localproject.web import sign_in_link
from tests.localproject.visitor import Visitor, found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.localproject.bench import Bench

PAGES = ("", "batches/1", "jobs/1", "hosts", "apps", "programs", "submit", "sign-in")
#: Everything that changes something or hands something out, for the one job of batch 1.
ACTIONS = (
    "batches/1/abort",
    "batches/1/retire",
    "batches/1/abort-jobs",
    "jobs/1/abort",
)
FILES = (
    "instances/1/outputs/0",
    "jobs/1/inputs/0",
    "jobs/1/outputs.zip",
    "batches/1/outputs.zip",
)


@pytest.fixture
def other(visitor: Visitor) -> Iterator[Visitor]:
    """A second browser."""
    with Visitor(visitor.core) as other:
        yield other


@pytest.fixture
def batch(bench: Bench, visitor: Visitor) -> int:
    """The submitter's batch, whose one job is done."""
    batch_id = visitor.sign_in().batch("b")
    bench.transition()
    bench.answer(bench.send())
    bench.settle()
    return batch_id


def state(bench: Bench) -> tuple[list[int], list[int]]:
    """What an action would change."""
    return bench.column("batch", "state"), bench.column("workunit", "error_mask")


# From where.


def from_afar(bench: Bench, path: str) -> tuple[int, str]:
    """Ask as a browser on another machine does, without having one."""
    client = make_app(bench.core).test_client()
    answer = client.get(f"/test/{path}", environ_base={"REMOTE_ADDR": "192.0.2.7"})
    return answer.status_code, answer.text


def test_nothing_is_shown_to_another_machine(bench: Bench, batch: int) -> None:
    for path in PAGES:
        status, text = from_afar(bench, path)
        assert status == 403, path
        assert "--page-for-everyone" in text
        assert "uppercase" not in text


def test_the_rpcs_answer_other_machines(bench: Bench) -> None:
    status, text = from_afar(bench, "submit_rpc_handler.php?request=<ping> </ping>")
    assert (status, "<error>" in text) == (200, True)
    assert from_afar(bench, "job_file.php")[0] == 200


def test_an_admin_can_show_the_page_to_everyone(bench: Bench) -> None:
    bench.core.remote_page = True
    status, text = from_afar(bench, "")
    assert status == 200
    assert "Batches" in text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_forms_of_other_sites_do_nothing(
    headers: dict[str, str], bench: Bench, visitor: Visitor, batch: int
) -> None:
    before = state(bench)
    for path in (*ACTIONS, "submit", "sign-out"):
        answer = visitor.send(path, {"app": "uppercase", "job_1": "on"}, headers=headers)
        assert answer.status_code == 403, path
        assert "Nothing was done" in answer.text
    assert state(bench) == before
    assert "Sign out" in visitor.text()


def test_forms_of_our_own_pages_are_taken(visitor: Visitor, batch: int) -> None:
    origin = visitor.core.url.removesuffix("/test/")
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    answer = visitor.send("batches/1/retire", headers=headers)
    assert answer.status_code == 303


def test_a_form_without_the_token_does_nothing(bench: Bench, visitor: Visitor, batch: int) -> None:
    before = state(bench)
    for path in (*ACTIONS, "submit", "sign-in", "sign-out"):
        for token in ("", "wrong", "ü"):
            answer = visitor.send(path, {"token": token, "app": "uppercase", "job_1": "on"})
            assert answer.status_code == 403, (path, token)
    assert state(bench) == before


def test_a_token_is_good_in_its_own_session_only(visitor: Visitor, other: Visitor) -> None:
    answer = other.send("sign-in", {"token": visitor.token(), "authenticator": "x"})
    assert answer.status_code == 403


# Signing in.


def authenticator(bench: Bench) -> str:
    row = bench.core.db.connection().execute(
        "SELECT authenticator FROM user WHERE name = 'submitter'"
    )
    return str(row.fetchone()[0])


def test_a_user_signs_in_with_the_authenticator(bench: Bench, visitor: Visitor) -> None:
    answer = visitor.send("sign-in", {"authenticator": f" {authenticator(bench)}\n"})
    assert visitor.said(answer) == "Signed in as submitter."
    assert visitor.get("submit").status_code == 200


@pytest.mark.parametrize(
    ("given", "told"),
    [("", "Enter the authenticator"), ("wrong", "No account has this authenticator")],
    ids=["nothing", "wrong"],
)
def test_a_wrong_authenticator_is_refused(given: str, told: str, visitor: Visitor) -> None:
    answer = visitor.send("sign-in", {"authenticator": given})
    assert answer.status_code == 422
    assert told in answer.text
    assert visitor.get("submit").status_code == 401


def test_an_account_without_rights_cannot_sign_in(bench: Bench, visitor: Visitor) -> None:
    key = add_user(bench.core.db, "bob", access=False)
    answer = visitor.send("sign-in", {"authenticator": key})
    assert "This account may not submit jobs" in answer.text


def test_a_link_signs_in_once_and_only_when_its_button_is_pressed(
    bench: Bench, visitor: Visitor, other: Visitor
) -> None:
    path, _, key = sign_in_link(bench.core).removeprefix(bench.core.url).partition("?key=")
    for _ in range(2):
        assert "Sign in as submitter" in visitor.text(f"{path}?key={key}")
    assert visitor.get("submit").status_code == 401
    assert visitor.said(visitor.send(path, {"key": key})) == "Signed in as submitter."
    assert other.send(path, {"key": key}).status_code == 422
    assert "was used already" in other.text(f"{path}?key={key}")


def test_after_signing_in_it_goes_on_here_and_nowhere_else(bench: Bench, visitor: Visitor) -> None:
    for then, to in (
        ("/test/jobs/1", "/test/jobs/1"),
        ("/test/submit?app=multi", "/test/submit?app=multi"),
        ("https://evil.example/test/", "/test/"),
        ("//evil.example/test/", "/test/"),
        ("/test/\\evil.example", "/test/"),
        ("/test/\r\nX: y", "/test/"),
    ):
        answer = visitor.send("sign-in", {"authenticator": authenticator(bench), "then": then})
        assert answer.headers["Location"] == to


def test_signing_out_ends_it(visitor: Visitor) -> None:
    visitor.sign_in()
    assert visitor.said(visitor.send("sign-out")) == "Signed out."
    assert visitor.get("submit").status_code == 401


def test_a_new_authenticator_ends_sessions_of_the_old_one(bench: Bench, visitor: Visitor) -> None:
    visitor.sign_in()
    bench.set("user", "name = 'submitter'", authenticator="new")
    assert visitor.get("submit").status_code == 401


def test_the_cookie_is_for_our_own_pages_and_not_for_scripts(visitor: Visitor) -> None:
    cookie = visitor.get("sign-in").headers["Set-Cookie"]
    assert cookie.startswith("local_project_")
    for part in ("; HttpOnly", "; SameSite=Strict", "; Path=/test/"):
        assert part in cookie


def test_looking_sets_no_cookie_that_could_undo_a_sign_in_or_out(visitor: Visitor) -> None:
    assert "Set-Cookie" not in visitor.get().headers
    visitor.sign_in().page()
    assert "Set-Cookie" not in visitor.get(**{"X-Live": "1"}).headers


def test_the_key_of_the_sessions_is_the_owners_alone_and_stays(
    bench: Bench, visitor: Visitor
) -> None:
    path = bench.directory / "page_key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    visitor.sign_in()
    [(name, value)] = visitor.session.cookies.items()
    client = make_app(bench.core).test_client()
    client.set_cookie(name, value, path="/test/", domain="127.0.0.1")
    assert client.get("/test/submit", base_url="http://127.0.0.1").status_code == 200


def test_no_authenticator_is_in_a_page_a_cookie_or_a_log(
    bench: Bench, visitor: Visitor, batch: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = authenticator(bench)
    seen = [visitor.send("sign-in", {"authenticator": secret})]
    seen.append(visitor.send("sign-in", {"authenticator": secret + "x"}))
    seen += [visitor.get(path) for path in PAGES]
    assert all(secret not in answer.text + str(answer.headers) + answer.url for answer in seen)
    assert secret not in caplog.text


# Who may do what.


def test_acting_needs_somebody_who_is_signed_in(bench: Bench, batch: int, other: Visitor) -> None:
    before = state(bench)
    for path in (*ACTIONS, "submit"):
        answer = other.send(path, {"app": "uppercase", "job_1": "on"})
        assert answer.status_code == 401, path
    assert state(bench) == before


def test_files_are_for_those_who_are_signed_in(
    batch: int, visitor: Visitor, other: Visitor
) -> None:
    for path in FILES:
        assert (visitor.get(path).status_code, other.get(path).status_code) == (200, 401), path


def test_looking_at_an_address_never_does_anything(visitor: Visitor, batch: int) -> None:
    for path in (*ACTIONS, "sign-out"):
        assert visitor.get(path).status_code in (404, 405), path


@pytest.mark.parametrize(
    ("rights", "may"),
    [
        ({}, False),
        ({"manage": ["multi"]}, False),
        ({"manage": ["uppercase"]}, True),
        ({"manage_all": True}, True),
    ],
    ids=["none", "manages another app", "manages the app", "manages all"],
)
def test_batches_of_others_are_for_those_who_manage_them(
    rights: dict[str, bool | list[str]], may: bool, bench: Bench, batch: int, other: Visitor
) -> None:
    add_user(bench.core.db, "dave", **rights)  # type: ignore[arg-type]
    other.sign_in("dave")
    page = other.page("batches/1")
    assert bool(found(page, "//details[@id='retire']")) == may
    assert bool(found(other.page("jobs/1"), "//a[@download]")) == may
    assert {other.get(path).status_code for path in FILES} == {200 if may else 403}
    before = state(bench)
    answers = [other.send(path, {"job_1": "on"}) for path in ACTIONS]
    assert {answer.status_code for answer in answers} == {303 if may else 403}
    assert (state(bench) == before) == (not may)


def test_ticked_jobs_of_others_are_not_aborted_through_ones_own_batch(
    bench: Bench, visitor: Visitor, other: Visitor
) -> None:
    visitor.sign_in().batch("theirs")
    add_user(bench.core.db, "dave")
    other.sign_in("dave").batch("mine")
    assert other.send("batches/2/abort-jobs", {"job_1": "on"}).status_code == 403
    assert other.send("batches/0/abort-jobs", {"job_1": "on"}).status_code == 403
    assert bench.column("workunit", "error_mask") == [0, 0]
    assert visitor.send("batches/1/abort-jobs", {"job_1": "on"}).status_code == 303


def test_a_user_may_submit_to_some_apps_only(bench: Bench, visitor: Visitor) -> None:
    add_user(bench.core.db, "carol", apps=["multi"])
    visitor.sign_in("carol")
    assert "carol may not submit jobs to uppercase" in visitor.text("submit?app=uppercase")
    files = {"file_0": ("in.txt", b"abc")}
    answer = visitor.send("submit", {"app": "uppercase"}, files)
    assert answer.status_code == 403
    assert not list(bench.core.download.root.rglob("*.txt"))
    assert bench.column("batch", "id") == []


def test_a_users_limit_of_jobs_holds(bench: Bench, visitor: Visitor) -> None:
    add_user(bench.core.db, "erin", max_jobs_in_progress=3)
    visitor.sign_in("erin")
    fields = {"app": "uppercase", "jobs": "4"}
    answer = visitor.send("submit", fields, {"file_0": ("in.txt", b"abc")})
    assert answer.status_code == 422
    assert "in progress exceeded" in answer.text
    assert bench.column("workunit", "id") == []


# What every answer says to browsers.


def test_browsers_are_told_what_may_be_done_with_a_page(visitor: Visitor) -> None:
    for path in ("", "batches/99", "sign-in", "static/page.js"):
        headers = visitor.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'; object-src 'none'"), path
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"


def test_pages_hold_nothing_that_the_policy_forbids_or_that_comes_from_elsewhere(
    visitor: Visitor, batch: int
) -> None:
    for path in PAGES:
        page = visitor.page(path)
        assert found(page, "//@style | //style | //script/text()") == [], path
        assert found(page, "//@*[starts-with(name(), 'on')]") == [], path
        sources = found(page, "//@src | //link/@href | //form/@action")
        assert all(source.startswith("/test/") for source in sources), path
