"""What a newcomer does wrong is told in results, as HTCondor sees them; mending it is enough."""

import signal
import subprocess

import pytest

from tests.cli.conftest import COMMAND
from tests.daemon.gridmanager import BatchGridmanager
from tests.daemon.home import SETTINGS, Home, Node
from tests.inside import workunit_names

pytestmark = pytest.mark.long


class Newcomer(Node):
    """Somebody whose settings are right until a test does something about them."""

    def __init__(self, directory, project):
        Home.__init__(self, directory)
        self.key = self.settings.with_name("authenticator")
        self.state = directory / ".local/state/boinc_gahp"
        self._project = project
        self.write("in", "some text\n")
        self.mend()

    def mend(self):
        """Put all right, as ``docs/htcondor-admins.rst`` says."""
        for path in (self.settings, self.key, self.state):
            if path.is_file():
                path.unlink()
        self.key.parent.mkdir(parents=True, exist_ok=True)
        self.key.touch(0o600)
        self.key.write_text(self._project.authenticator)
        self.settings.write_text(
            f'[project]\nurl = "{self._project.url}"\nauthenticator_file = "authenticator"\n'
            + SETTINGS
        )

    def check(self):
        """Return what ``boinc_gahp check`` prints."""
        done = subprocess.run(
            [COMMAND, "check"],
            env=self.environ,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (1, "")
        return done.stdout


@pytest.fixture
def newcomer(tmp_path, project):
    return Newcomer(tmp_path, project)


def state_is_a_file(of):
    of.state.parent.mkdir(parents=True)
    of.state.touch()


#: What is done wrong, and what the reason must have; more in ``tests/config`` and ``tests/ledger``.
MISTAKES = {
    "no authenticator": (lambda of: of.key.unlink(), ("/authenticator: No such file", "chmod 600")),
    "state is a file": (state_is_a_file, ("/.local/state/boinc_gahp/ledger.sqlite", "[state]")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_the_hold_reason_of_a_job_which_is_accepted_once_it_is_mended(newcomer, name):
    make, words = MISTAKES[name]
    make(newcomer)
    with newcomer.daemon() as daemon:
        gridmanager = BatchGridmanager(daemon)
        gridmanager.ping()
        jobs = gridmanager.submit_all([newcomer.ad("1.0"), newcomer.ad("1.1")])
        assert len(set(jobs)) == 2
        for status in gridmanager.statuses(jobs).values():
            reason = str(status["HoldReason"])
            assert status.word == 5
            assert (status["HoldReasonCode"], status["HoldReasonSubCode"]) == (2303, 0)
        for each in words:
            assert each in reason
        told, end, _ = reason.partition(". Release the job when this is fixed")
        assert end
        # With the same words, whoever asks.
        assert told in newcomer.check()
        [answer] = gridmanager.do("BOINC_PING")
        assert answer.partition(" [BG-")[0] in (told, "NULL")
        gridmanager.cancel(*jobs)
        newcomer.mend()
        # At once: a release must not come too early.
        again = gridmanager.submit(newcomer.ad("1.0"))
        assert gridmanager.do("BOINC_PING") == ["NULL"]
        assert again not in jobs
        assert gridmanager.status(again).word in {1, 2}
        gridmanager.cancel(again)
        daemon.end_input()
        code, _, errors = daemon.end()
        assert code == 0
    # A line, where the log cannot be begun.
    assert errors.count(b"\n") <= 1


def test_accepted_jobs_go_on_where_they_were_once_the_settings_are_mended(newcomer, project):
    project.pause_volunteers()
    before = len(workunit_names(project))
    with newcomer.daemon() as daemon:
        jobs = BatchGridmanager(daemon).submit_all([newcomer.ad("1.0"), newcomer.ad("1.1")])
        daemon.process.send_signal(signal.SIGKILL)
    newcomer.settings.write_text("[project\n")
    with newcomer.daemon() as daemon:
        gridmanager = BatchGridmanager(daemon)
        gridmanager.ping()
        # HTCondor shows it as GridJobStatus, and holds nothing.
        assert {each.word for each in gridmanager.statuses(jobs).values()} == {7}
        refused = gridmanager.submit(newcomer.ad("1.2"))
        # A cancel waits until it can be written down.
        cancel = gridmanager.begin("BLAH_JOB_CANCEL", jobs[1])
        assert gridmanager.status(refused).word == 5
        newcomer.mend()
        assert gridmanager.result(cancel) == ["0", "NULL"]
        project.resume_volunteers()
        assert gridmanager.follow(jobs[:1])[jobs[0]].word == 4
        assert gridmanager.status(jobs[1]).word == 3
    assert (newcomer.directory / "1.0.out").read_text() == "SOME TEXT\n"
    assert len(workunit_names(project)) <= before + 2
