"""A daemon goes on beside one of the next release, in the same state directory.

That is so for a few seconds after another version was installed, or as long as its user wants to.
"""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from boinc_gahp.ledger import _migrations
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import BatchState
from tests import faultproxy
from tests.daemon.gridmanager import BatchGridmanager, statuses, submission
from tests.daemon.home import Node
from tests.daemon.process import Daemon
from tests.helpers import wait_for
from tests.inside import batches, workunit_names
from tests.next_release import VERSION, next_release  # noqa: F401  (fixture)

pytestmark = pytest.mark.long

_MAIN = "import sys; from boinc_gahp.cli.main import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def project(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=2) as project:
        yield project


@pytest.fixture
def proxy(project):
    with faultproxy.FaultProxy(project.url) as proxy:
        yield proxy


class Shared(Node):
    """A submit node on which the daemons of two releases run."""

    def __init__(self, directory, project, url, later):
        super().__init__(directory, project)
        self.settings.write_text(self.settings.read_text().replace(project.url, url))
        self.with_later = {**self.environ, "PYTHONPATH": str(later), "PYTHONDONTWRITEBYTECODE": "1"}

    def later(self, *words):
        return [sys.executable, "-c", _MAIN, *words]

    def new_daemon(self):
        return Daemon(self.later(), environ=self.with_later, cwd=Path("/"))

    def ask(self, question):
        (path,) = self.directory.rglob("ledger.sqlite")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as ledger:
            return ledger.execute(question).fetchall()

    def pending(self):
        """Return BOINC_SUBMIT's batches, by their states."""
        return self.ask("SELECT name, state FROM batch WHERE project_id IS NULL ORDER BY name")

    def submission(self, batch):
        jobs = {f"{batch}#1.{each}": ([], [self.write("in", "some text\n"), "in"]) for each in "01"}
        return submission(batch, "uppercase", jobs)


@pytest.fixture
def node(
    tmp_path,
    project,
    proxy,
    next_release,  # noqa: F811
):
    return Shared(tmp_path, project, proxy.url, next_release)


def held_up(proxy, *, carried_out):
    """Have the next submit_batch get no answer."""
    hang = faultproxy.hang(carried_out=carried_out)
    proxy.fail("submit_batch", hang)
    return hang


def test_what_the_old_one_is_sending_is_neither_sent_twice_nor_aborted_nor_lost(
    node, project, proxy
):
    with node.daemon() as old:
        before = BatchGridmanager(old)
        before.ping()
        # Three submit_batch of it are under way: of BOINC_SUBMIT, one that will end well and one
        # that will not, and that of HTCondor's jobs.
        ends_well = held_up(proxy, carried_out=False)
        answer = before.begin("BOINC_SUBMIT", *node.submission("ends_well"))
        wait_for(ends_well.reached.is_set, "the first submit_batch")
        dies = held_up(proxy, carried_out=False)
        before.begin("BOINC_SUBMIT", *node.submission("dies"))
        wait_for(dies.reached.is_set, "the second submit_batch")
        jobs_held_up = held_up(proxy, carried_out=True)
        jobs = before.submit_all(node.ad(f"1.{number}") for number in range(4))
        wait_for(jobs_held_up.reached.is_set, "the submit_batch of HTCondor's jobs")
        assert node.ask("PRAGMA user_version") == [(_migrations.VERSION,)]

        with node.new_daemon() as new:
            after = BatchGridmanager(new)
            after.ping()
            # From here on it checks what is pending.
            assert after.do("BOINC_PING") == ["NULL"]
            more = after.submit_all(node.ad(f"2.{number}") for number in range(2))
            assert node.ask("PRAGMA user_version") == [(VERSION,)]
            assert node.pending() == [("dies", "sent"), ("ends_well", "sent")]
            # The old one manages the account: it sends the new one's jobs, and volunteers do them.
            ends = after.follow(more)
            assert {status.word for status in ends.values()} == {4}
            assert proxy.count("submit_batch") == 4
            told = subprocess.run(
                node.later("ledger", "reconcile", "--timeout", "5"),
                env=node.with_later, cwd="/", capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert f"left to the daemon (process {old.process.pid})" in told.stdout
            ends_well.release()
            assert before.result(answer) == ["NULL"]
            assert node.pending() == [("dies", "sent")]
            assert before.do("BOINC_SUBMIT", *node.submission("begun_later")) == ["NULL"]
            assert node.pending() == [("dies", "sent")]
            assert proxy.count("submit_batch") == 5
            assert proxy.count("abort_batch") == proxy.count("abort_jobs") == 0

            old.process.kill()
            old.process.wait()
            # What was under way reaches the project only now.
            dies.release()
            jobs_held_up.release()
            assert {status.word for status in after.follow(jobs).values()} == {4}

            def recover():
                """Do what a gridmanager does for a batch of unknown state."""
                if statuses(after.do("BOINC_QUERY_BATCHES", "0", "1", "dies")):
                    return True
                return after.do("BOINC_SUBMIT", *node.submission("dies")) == ["NULL"]

            wait_for(recover, "the batch that was cut short is there")
            assert after.do("BOINC_QUERY_BATCHES", "0", "1", "dies")[2] == "2"
            assert node.pending() == []
            new.end_input()
            assert new.end() == (0, b"", b"")
    names = workunit_names(project)
    assert len(names) == len(set(names)) == 4 + 2 + 3 * 2
    assert BatchState.ABORTED not in {state for _, _, state in batches(project)}
    assert "Traceback" not in node.log()
    assert "the ledger" not in node.log()
