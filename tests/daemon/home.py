"""A user's home on the submit node, in which the installed command runs."""

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

from tests.cli.conftest import COMMAND
from tests.daemon.gridmanager import BatchGridmanager, Gridmanager, job_ad
from tests.daemon.process import Daemon

SETTINGS = """\
[htcondor]
send_after = 0.2
longest_wait = 1.0
poll_shortest = 0.3
poll_longest = 0.3
"""


class Home:
    """A user's home on the submit node; the daemon is given no more than HTCondor gives it."""

    def __init__(self, directory):
        self.directory = directory
        self.settings = directory / ".config/boinc_gahp/boinc_gahp.toml"
        self.environ = {"HOME": str(directory), "PATH": "/usr/bin:/bin"}
        self.environ |= {key: value for key, value in os.environ.items() if key.startswith("COV")}

    def set_up(self, project, more=""):
        self.settings.parent.mkdir(parents=True)
        text = '[logging]\nlevel = "debug"\n[timeouts]\nretry = 1\n'
        if project is not None:
            text += f'[project]\nurl = "{project.url}"\n'
            text += f'authenticator = "{project.authenticator}"\n'
        self.settings.write_text(text + more)
        self.settings.chmod(0o600)

    @contextmanager
    def daemon(self):
        with Daemon([COMMAND], environ=self.environ, cwd=Path("/")) as daemon:
            yield daemon

    @contextmanager
    def gridmanager(self):
        """Talk as a gridmanager does, up to the end of input; the daemon must end well."""
        with self.daemon() as daemon:
            yield Gridmanager(daemon)
            daemon.end_input()
            assert daemon.end() == (0, b"", b"")

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def log(self):
        return "".join(path.read_text() for path in self.directory.rglob("boinc_gahp.log"))

    def has_done(self, rpc):
        """Whether the RPC, or a whole submit, which may not have needed it, is in the log."""
        return f": {rpc} " in self.log() or "BOINC_SUBMIT 2: done" in self.log()


class Node(Home):
    """A submit node with one user, whose jobs use the app ``uppercase``."""

    def __init__(self, directory, project):
        super().__init__(directory)
        self.set_up(project, SETTINGS)
        self.write("in", "some text\n")

    @contextmanager
    def batch_gridmanager(self):
        """Talk up to the end of input; the daemon must end well."""
        with self.daemon() as daemon:
            gridmanager = BatchGridmanager(daemon)
            gridmanager.ping()
            yield gridmanager
            daemon.end_input()
            assert daemon.end() == (0, b"", b"")

    def ad(self, name, **attributes):
        """Return the ad of a job whose output, Out and Err are named after it."""
        ours = {
            "BoincApp": "uppercase",
            "TransferInput": "in",
            "TransferOutput": "out",
            "TransferOutputRemaps": f"out={name}.out",
            "Err": f"errors/{name}",
            "JobDirectory": f"home_bl_vm_9618_vm_{name}_1795261016",
        }
        return job_ad(str(self.directory), **(ours | attributes))

    def told(self):
        """Return of how many jobs' ends the ledger knows that HTCondor was told."""
        (path,) = self.directory.rglob("ledger.sqlite")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as ledger:
            return ledger.execute("SELECT count(*) FROM job WHERE end_reported").fetchone()[0]
