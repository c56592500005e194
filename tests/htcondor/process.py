"""Daemons of a submit node as HTCondor starts them: real processes, talked to over pipes."""

import os
import sys

from tests.cli import conftest
from tests.daemon.gridmanager import BatchGridmanager
from tests.daemon.process import Daemon

_MAIN = "import sys; from boinc_gahp.cli.main import main; sys.exit(main([]))"
_COMMAND = (sys.executable, "-W", "error", "-c", _MAIN)


def write_settings(site):
    """Write the site's settings as a user would have them; return the file."""
    names = ("send_after", "longest_wait", "poll_shortest", "poll_longest", "retire_wait")
    htcondor = "\n".join(f"{name} = {getattr(site.htcondor, name)}" for name in names)
    more = f"""
[timeouts]
connect = {site.timeouts.connect}
read = {site.timeouts.read}
retry = {site.timeouts.retry}

[htcondor]
{htcondor}

[state]
dir = "{site.directory / "state"}"
cache_dir = "{site.directory / "cache"}"
"""
    path = site.directory / "boinc_gahp.toml"
    return conftest.write_settings(path, site.proxy.url, site.authenticator, more)


class Gahp(BatchGridmanager):
    """A daemon with a gridmanager; killed at the end of the with block, if not before.

    Args:
        settings: the file with its settings.
    """

    def __init__(self, settings):
        environ = {**os.environ, "BOINC_GAHP_CONFIG": str(settings)}
        daemon = Daemon(_COMMAND, environ=environ, cwd=settings.parent)
        try:
            super().__init__(daemon)
        except BaseException:
            daemon.__exit__(None, None, None)
            raise
        self.process = daemon.process

    def kill(self):
        """Kill it with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.daemon.__exit__(kind, error, traceback)
