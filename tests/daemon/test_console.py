"""The console as a person sees it: on a real terminal, with a real project."""

import re
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from boinc_gahp import __version__
from boinc_gahp.localproject.project import LocalProject
from tests import faultproxy
from tests.daemon.terminal import Terminal
from tests.faultproxy import FaultProxy

pytestmark = pytest.mark.long

CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"


@dataclass
class Desk:
    """Where a person sits: a home with settings, and a project behind a proxy."""

    home: Path
    local: LocalProject
    proxy: FaultProxy

    @property
    def state(self):
        return self.home / "state"

    @property
    def environ(self):
        return {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config")}

    def settings(self, *, project=True):
        """Write a settings file; return its path."""
        lines = ["[state]", f'dir = "{self.state}"', f'cache_dir = "{self.home}/cache"']
        if project:
            lines += ["[project]", f'url = "{self.proxy.url}"']
            lines += [f'authenticator = "{self.local.authenticator}"']
        path = self.home / "boinc_gahp.toml"
        path.write_text("\n".join([*lines, ""]))
        path.chmod(0o600)
        return str(path)

    @contextmanager
    def console(self, environ=None, *, project=True):
        """Start the console and wait for its prompt."""
        config = self.settings(project=project)
        with Terminal(["--config", config], {**self.environ, **(environ or {})}) as terminal:
            terminal.greeting = terminal.see_prompt()
            yield terminal


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=0) as project:
        yield project


@pytest.fixture
def desk(local, tmp_path):
    with FaultProxy(local.url) as proxy:
        yield Desk(tmp_path, local, proxy)


def test_it_greets_with_version_project_log_and_help(desk):
    with desk.console() as terminal:
        assert terminal.greeting.startswith("What most people want:")
        for part in (
            f"boinc_gahp {__version__}",
            f"project: {desk.proxy.url}",
            f"log: {desk.state}/boinc_gahp.log",
            "type help",
        ):
            assert part in terminal.greeting
        assert "$GahpVersion" not in terminal.raw


def test_a_job_can_be_typed_as_htcondor_sends_it(desk):
    (desk.home / "in.txt").write_text("some text\n")
    with desk.console() as terminal:
        terminal.enter("BLAH_PING 2 boinc")
        terminal.see("BLAH_PING 2: ok")
        ad = f'[BoincApp="uppercase"; Iwd="{desk.home}"; TransferInput="in.txt"; JobDirectory="a"]'
        terminal.enter(f"BLAH_JOB_SUBMIT 3 {ad}")
        seen = terminal.see("BLAH_JOB_SUBMIT 3: ok", "job_id: boinc/")
        (job,) = set(re.findall(r"boinc/\w+\.\d+", seen))
        terminal.type("blah_job_st" + TAB)
        terminal.see("BLAH_JOB_STATUS")
        terminal.enter(f" 4 {job}")
        terminal.see("BLAH_JOB_STATUS 4: ok status: 1 (idle)")
        terminal.enter(f"BLAH_JOB_CANCEL 5 {job}")
        terminal.see("BLAH_JOB_CANCEL 5: ok")
        terminal.enter(f"BLAH_JOB_STATUS 6 {job}")
        terminal.see("BLAH_JOB_STATUS 6: ok status: 3 (removed)")
        terminal.enter("BLAH_JOB_SUBMIT 7 nonsense")
        terminal.see("BLAH_JOB_SUBMIT 7: error: the job's ad cannot be read")


def test_what_is_wrong_with_a_line_is_reported_and_below_it_stands_its_form(desk):
    with desk.console(project=False) as terminal:
        assert "project: none; type BOINC_SELECT_PROJECT url authenticator" in terminal.greeting
        terminal.enter("BOINC_PING seven")
        seen = terminal.see('error: BOINC_PING: id (argument 1) is "seven"', "a whole number above")
        assert " E " not in seen
        terminal.enter("exit")
        terminal.see("error: QUIT or Ctrl-D ends")
        terminal.enter("help help")
        terminal.see("this, or all about a command")
        terminal.enter("BOINC_PNIG 7")
        terminal.see('error: there is no command "BOINC_PNIG"')
        terminal.enter("BOINC_PING 1")
        terminal.see("BOINC_PING 1: error: no settings file names a project")
        terminal.type("BOINC_SET_LEASE ")
        terminal.see("BOINC_SET_LEASE id batch unix_time")


def test_a_result_does_not_tear_a_line_being_typed(desk):
    slow = faultproxy.hang()
    desk.proxy.fail("ping", slow)
    with desk.console() as terminal:
        terminal.enter("BOINC_PING 7")
        assert slow.reached.wait(60)
        terminal.type("VERS")
        terminal.see("VERS")
        slow.release()
        terminal.see("BOINC_PING 7: ok boinc_gahp> VERS")
        terminal.enter("ION")
        terminal.see("S $GahpVersion:")


def test_ctrl_c_drops_the_line_and_nothing_else(desk):
    with desk.console() as terminal:
        terminal.type("BOINC_RETIRE_BATCH 2 precious")
        terminal.see("precious")
        terminal.type(CTRL_C)
        terminal.see_prompt()
        terminal.enter("VERSION")
        terminal.see("S $GahpVersion:")
    assert desk.proxy.count("retire_batch") == 0


@pytest.mark.parametrize("leave", [CTRL_D, "QUIT\r", "quit\r"], ids=["Ctrl-D", "QUIT", "quit"])
def test_it_is_left_with_status_0(desk, leave):
    with desk.console() as terminal:
        terminal.type(leave)
        assert terminal.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_a_signal_to_stop_ends_it_and_leaves_the_terminal_in_order(desk, number):
    with desk.console() as terminal:
        terminal.kill(number)
        assert terminal.end() == 0
        assert "Traceback" not in terminal.raw
        # Bracketed paste is the last thing that it had switched on.
        assert terminal.raw.rindex("\x1b[?2004l") > terminal.raw.rindex("\x1b[?2004h")


def test_leaving_tells_of_requests_that_are_not_finished(desk):
    slow = faultproxy.hang()
    desk.proxy.fail("ping", slow)
    with desk.console() as terminal:
        terminal.enter("BOINC_PING 7")
        assert slow.reached.wait(60)
        assert terminal.leave() == 0
        assert "1 request not finished; those on the project continue" in terminal.text


def test_an_authenticator_is_not_shown_and_not_kept_anywhere(desk):
    secret = desk.local.authenticator
    with desk.console(project=False) as terminal:
        terminal.enter(f"BOINC_SELECT_PROJECT {desk.proxy.url} {secret}")
        terminal.see("S")
        terminal.enter("BOINC_PING 2")
        terminal.see("BOINC_PING 2: ok")
        terminal.enter(f"BOINC_SELECT_PROJET {desk.proxy.url} {secret}")
        terminal.see('there is no command "BOINC_SELECT_PROJET"')
        terminal.leave()
        assert secret not in terminal.raw
        assert secret not in terminal.screen.text().replace(" ", "")
        assert (
            f"BOINC_SELECT_PROJECT {desk.proxy.url} {'*' * len(secret)}" in terminal.screen.text()
        )
    kept = [path for path in desk.home.rglob("*") if path.is_file()]
    assert desk.state / "console_history" in kept
    assert desk.state / "boinc_gahp.log" in kept
    assert not [path for path in kept if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_used_unless_unwanted(desk, environ, *, coloured):
    with desk.console(environ) as terminal:
        terminal.enter("BOINC_PING 7")
        terminal.see("BOINC_PING 7: ok")
        assert ("\x1b[0;32m" in terminal.raw) is coloured
