from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.cli import gahp_client
from boinc_gahp.cli.gahp_client import ConversationError, Gahp

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

BANNER = "print('$GahpVersion: 1 $', flush=True)\n"
ECHO = (
    BANNER + "import sys\nprefix = ''\n"
    "for line in sys.stdin:\n"
    "    print(prefix + 'S', flush=True)\n"
    "    if line.startswith('RESPONSE_PREFIX'): prefix = 'GAHP:'\n"
)


def daemon(program: str, directory: Path) -> Gahp:
    return Gahp([sys.executable, "-I", "-c", program], os.environ, str(directory))


def begin(program: str, directory: Path) -> str:
    with daemon(program, directory) as gahp, pytest.raises(ConversationError) as caught:
        gahp.begin()
    return str(caught.value)


def test_a_program_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConversationError, match="/no/such cannot be started: No such file"):
        Gahp(["/no/such"], {}, str(tmp_path))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "import sys; sys.exit('boinc_gahp: settings are wrong')",
            "the daemon has ended: boinc_gahp: settings are wrong",
        ),
        (BANNER + "raise SystemExit(3)", "the daemon has ended (status 3)"),
        ("print('hello')", "the daemon's banner is 'hello'"),
        (BANNER + "print('E'); input()", "COMMANDS was answered with E"),
        (ECHO.replace("prefix = 'GAHP:'", "pass"), "a line without the prefix came: S"),
    ],
    ids=["ended with words", "ended without", "another banner", "an error line", "no prefix"],
)
def test_a_conversation_that_goes_wrong_is_said(tmp_path: Path, program: str, said: str) -> None:
    assert begin(program, tmp_path) == said


def test_silence_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gahp_client, "RETURN_LINE_TIMEOUT", 0.3)
    assert "did not answer within 0.3 s" in begin("input()", tmp_path)


def test_no_results_in_time_is_no_error(tmp_path: Path) -> None:
    with daemon(ECHO, tmp_path) as gahp:
        gahp.begin()
        assert gahp.results(0.2) == []


def test_a_daemon_that_ends_while_results_are_awaited_is_reported(tmp_path: Path) -> None:
    program = ECHO + "    if line.startswith('BOINC_PING'): break\n"
    with daemon(program, tmp_path) as gahp:
        gahp.begin()
        assert gahp.request("BOINC_PING") == 2
        with pytest.raises(ConversationError, match="has ended"):
            gahp.results(20)


def test_a_daemon_that_does_not_leave_is_made_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gahp_client, "STOP_TIMEOUT", 0.2)
    program = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + BANNER + "\n"
        "while True: time.sleep(60)\n"
    )
    gahp = daemon(program, tmp_path)
    assert gahp._line(20).startswith(b"$")
    gahp.stop()
    assert gahp._process.returncode == -9
    gahp.stop()
