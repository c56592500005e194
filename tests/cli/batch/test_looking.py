"""Looks at a project that is down: somebody at a terminal is told soon, a script waits."""

import re
import threading

import pytest

from boinc_gahp.backoff import Backoff
from boinc_gahp.cli.batch import opening
from boinc_gahp.cli.main import main
from tests.cli.conftest import ended, write_settings
from tests.helpers import wait_for

LOOKS = [("list",), ("show", "1"), ("logs", "1")]
GAVE_UP = "; gave up after "


@pytest.fixture
def down(site):
    """Stops the project's web server."""
    with site.down():
        yield


@pytest.mark.parametrize("words", LOOKS, ids=[words[0] for words in LOOKS])
def test_a_look_that_takes_too_long_is_given_up_and_says_what_did_not_answer(
    batch, down, words, monkeypatch
):
    # The pause after the first attempt would be longer than the time there is.
    monkeypatch.setattr("boinc_gahp.rpc.retry.BACKOFF", Backoff(3600.0))
    err = batch.refuses(*words, "--timeout", "60")
    last = err.splitlines()[-1]
    assert re.fullmatch(
        r"boinc_gahp: 127\.0\.0\.1:\d+ refuses to list the batches \(the project is down: "
        r"try again later\): project down for maintenance; gave up after \d+ s; "
        r"--timeout 5min waits longer for an answer \[BG-PROJECT-DOWN\]",
        last,
    )


@pytest.mark.processes
def test_a_terminal_is_told_without_being_asked(site, batch, down):
    child = batch.on_terminal("list", columns=400)
    child.expect_exact("trying again for up to 10 s")
    child.expect_exact(GAVE_UP)
    assert ended(child) == 1


def test_a_pipe_waits_longer(site, batch, monkeypatch, capsys):
    monkeypatch.setattr(opening, "_PATIENCE", 0.0)
    monkeypatch.setattr(opening, "_PAUSE", 0.0)
    site.batch("")
    statuses = []
    told = ""

    def is_told():
        nonlocal told
        told += capsys.readouterr().err
        return "trying again for up to 120 s" in told

    looking = threading.Thread(target=lambda: statuses.append(main(["batch", "list"])))
    with site.down():
        looking.start()
        wait_for(is_told, "the first attempt")
    looking.join(60)
    assert statuses == [0]
    assert GAVE_UP not in told + capsys.readouterr().err


def test_an_error_that_more_time_does_not_help_is_told_as_it_is(site, batch, tmp_path):
    config = write_settings(
        tmp_path / "s.toml", f"{site.project.url}elsewhere/", site.project.authenticator
    )
    err = batch.refuses("list", "--timeout", "60", "--config", config)
    assert "404" in err
    assert GAVE_UP not in err
