"""Daemons of a submit node as HTCondor starts them: real processes, talked to over pipes."""

import os
import sys

from tests.daemon.gridmanager import Gridmanager
from tests.daemon.process import Daemon

_MAIN = "import sys; from boinc_gahp.cli.main import main; sys.exit(main([]))"
_COMMAND = (sys.executable, "-W", "error", "-c", _MAIN)


def write_settings(site):
    """Write the site's settings as a user would have them; return the file."""
    secret = site.directory / "authenticator"
    secret.touch(0o600)
    secret.write_text(site.authenticator)
    htcondor = site.htcondor
    path = site.directory / "boinc_gahp.toml"
    path.write_text(
        f"""
[project]
url = "{site.proxy.url}"
authenticator_file = "{secret}"
{f'container_app = "{site.container_app}"' if site.container_app else ""}

[timeouts]
connect = {site.timeouts.connect}
read = {site.timeouts.read}
retry = {site.timeouts.retry}

[htcondor]
quiet = {htcondor.quiet}
longest_wait = {htcondor.longest_wait}
poll_shortest = {htcondor.poll_shortest}
poll_longest = {htcondor.poll_longest}
retire_wait = {htcondor.retire_wait}

[state]
dir = "{site.directory / "state"}"
cache_dir = "{site.directory / "cache"}"
"""
    )
    path.chmod(0o600)
    return path


class Gahp:
    """A daemon with a gridmanager; killed at the end of the with block, if not before.

    Args:
        settings: the file with its settings.
        environ: variables that it has besides.
    """

    def __init__(self, settings, environ=None):
        self._daemon = Daemon(
            _COMMAND,
            environ={**os.environ, "BOINC_GAHP_CONFIG": str(settings), **(environ or {})},
            cwd=settings.parent,
        )
        try:
            self._gridmanager = Gridmanager(self._daemon)
        except BaseException:
            self.kill()
            raise

    def submit(self, ad):
        """Return the id of a job."""
        error, words, job_id = self._gridmanager.do("BLAH_JOB_SUBMIT", ad)
        assert (error, words) == ("0", "NULL"), words
        return job_id

    @property
    def pid(self):
        """Its process id."""
        return self._daemon.process.pid

    def status(self, job_id):
        """Return the status of a job, which must not be held."""
        status, ad = self.told(job_id)
        assert status in {1, 2, 4}, ad
        return status

    def told(self, job_id):
        """Return what is told of a job: its status, and the ad."""
        error, words, status, ad = self._gridmanager.do("BLAH_JOB_STATUS", job_id)
        assert (error, words) == ("0", "NULL"), words
        return int(status), ad

    def refusal(self, ad):
        """Return why a job is not accepted."""
        error, words, job_id = self._gridmanager.do("BLAH_JOB_SUBMIT", ad)
        assert error != "0"
        assert job_id == "NULL"
        return words

    def cancel(self, job_id):
        """Cancel a job."""
        assert self._gridmanager.do("BLAH_JOB_CANCEL", job_id) == ["0", "NULL"]

    def ping(self):
        assert self._gridmanager.do("BLAH_PING", "boinc") == ["0", "NULL"]

    def kill(self):
        """Kill it with SIGKILL."""
        self._daemon.process.kill()
        self._daemon.process.wait()

    def wait(self):
        """Wait until it has ended by itself; return its exit status."""
        return self._daemon.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self._daemon.__exit__(kind, error, traceback)
