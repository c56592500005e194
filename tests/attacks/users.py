"""Two users of a submit node."""

import os
import shutil

import pytest

from boinc_gahp.files import user_name
from tests.cli.conftest import COMMAND
from tests.daemon.process import Daemon
from tests.helpers import ran

#: Users who need not exist.
ALICE, BOB = 54320, 54321

ME = user_name(os.geteuid())

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can be two users (with setpriv, of util-linux)",
)


def become(uid):
    """Return what runs a command as another user, who may read all: Python may be in a home."""
    capability = "-all,+dac_read_search"
    return [
        "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
        f"--inh-caps={capability}", f"--ambient-caps={capability}", f"--bounding-set={capability}",
    ]  # fmt: skip


def environment(home, settings):
    """Return the environment of a user with a home, who names one settings file."""
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "XDG_CONFIG_DIRS": str(home.parent / "site"),
        "BOINC_GAHP_CONFIG": str(settings),
    }


def run_as(uid, *command, **more):
    """Do a command as another user; return its exit status, output and errors."""
    done = ran(*become(uid), *command, **more)
    return done.returncode, done.stdout, done.stderr


def ping(environ, cwd, *user):
    """Have a daemon answer a ping; return the Result Line, and what is on its stderr."""
    with Daemon([*user, COMMAND], environ=environ, cwd=cwd) as daemon:
        daemon.line()
        daemon.ask(b"BOINC_PING 1")
        [result] = daemon.await_results(1)
        daemon.send(b"QUIT\r\n")
        return result.decode().replace("\\ ", " "), daemon.end()[2].decode()
