"""A program that is replaced or removed while its daemon runs."""

import stat
import sys
import threading
from contextlib import contextmanager

import pytest

from boinc_gahp.daemon import _housekeeping
from tests.daemon.process import Daemon
from tests.helpers import wait_for

#: As pip writes it.
SCRIPT = f"""\
#!{sys.executable}
import sys
from boinc_gahp.cli.main import main
sys.exit(main())
"""


def install(path):
    """Put the program there; where there is one, another file takes its place."""
    new = path.with_name("new")
    new.write_text(SCRIPT)
    new.chmod(new.stat().st_mode | stat.S_IXUSR)
    return new.replace(path)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(_housekeeping, "INTERVAL", 0.01)
    return install(tmp_path / "boinc_gahp")


@contextmanager
def watched(path):
    """Yield what is set when the process would be ended."""
    closing, ended = threading.Event(), threading.Event()
    watching = _housekeeping.Program(str(path))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_housekeeping, "end_process", ended.set)
        thread = threading.Thread(target=watching.watch, args=(closing,))
        thread.start()
        try:
            yield ended
        finally:
            closing.set()
            thread.join()


@pytest.mark.parametrize("by_link", [False, True], ids=["itself", "what its link leads to"])
def test_one_that_was_replaced_ends_the_process(path, caplog, by_link):
    run = path
    if by_link:
        run = path.with_name("link")
        run.symlink_to(path)
    with watched(run) as ended:
        if by_link:
            run.unlink()
            run.symlink_to(install(path.with_name("other")))
        else:
            install(path)
        assert ended.wait(60)
    assert f"The program {run} was replaced by another" in caplog.text


def test_one_that_is_gone_for_a_moment_does_not_end_it_but_for_good_does(path, monkeypatch, caplog):
    away = path.with_name("away")
    looks = []
    identity = _housekeeping._identity

    def noted(name):
        looks.append("gone" if (found := identity(name)) is None else "there")
        return found

    monkeypatch.setattr(_housekeeping, "_identity", noted)
    with watched(path) as ended:
        path.rename(away)
        wait_for(lambda: "gone" in looks, "a look that finds nothing")
        away.rename(path)
        wait_for(lambda: looks[-1] == "there", "a look that finds it again")
        assert not ended.is_set()
        monkeypatch.setattr(_housekeeping, "GONE", 1.0)
        path.unlink()
        assert ended.wait(60)
    assert f"The program {path} was removed" in caplog.text


def test_nothing_is_looked_at_where_it_is_not_known_what_was_run(path):
    for unknown in ("", "x" * 5000):
        _housekeeping.Program(unknown).watch(threading.Event())


@pytest.mark.long
def test_a_daemon_that_was_upgraded_under_its_feet_ends_as_on_sigterm(path, tmp_path):
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with Daemon([str(path)], environ=environ, cwd=tmp_path) as daemon:
        daemon.line()
        daemon.send(b"COMMANDS\r\n")
        assert daemon.line().startswith(b"S ")
        install(path)
        assert daemon.process.wait(60) == 0
