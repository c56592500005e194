"""Somebody who gets hold of a core file of the daemon wants the authenticators in it."""

import resource
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND
from tests.daemon.process import Daemon
from tests.helpers import ran

pytestmark = pytest.mark.processes


HAS_NONE = pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_CORE)[1] == 0, reason="no core files at all here"
)


@HAS_NONE
def test_the_daemon_writes_no_core_file_and_cannot_be_made_to(tmp_path):
    shell = ["sh", "-c", 'ulimit -S -c "$(ulimit -H -c)"; exec "$0"', COMMAND]
    with Daemon(shell, environ={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}) as daemon:
        daemon.line()
        limits = Path(f"/proc/{daemon.process.pid}/limits").read_text().splitlines()
        (core,) = [line.split() for line in limits if line.startswith("Max core file size")]
        assert core[4:6] == ["0", "0"]


#: Allows core files, as large as may be.
ALLOW = """
import resource
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
"""
COMMAND_ENDS = """
from boinc_gahp.cli.main import main
main(["completion", "bash"])
raise SystemExit(resource.getrlimit(resource.RLIMIT_CORE)[0])
"""
LIBRARY = """
from boinc_gahp import Project
Project("http://127.0.0.1:9/", "an-authenticator").close()
assert resource.getrlimit(resource.RLIMIT_CORE) == (hard, hard)
"""


def check(program, home):
    done = ran(sys.executable, "-c", ALLOW + program, environ={"HOME": str(home)})
    assert (done.returncode, done.stderr) == (0, "")


@HAS_NONE
def test_a_command_writes_no_core_file(tmp_path):
    check(COMMAND_ENDS, tmp_path)


@HAS_NONE
def test_a_program_that_uses_the_library_keeps_its_own_limit(tmp_path):
    check(LIBRARY, tmp_path)
