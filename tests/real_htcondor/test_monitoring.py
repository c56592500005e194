"""What whoever watches a submit node is told while jobs go their way, and when they do not."""

import json

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.pool import COMPLETED
from tests.real_htcondor.submit import grid

pytestmark = pytest.mark.timeout(300)

COMMAND = ("/opt/boinc_gahp/bin/boinc_gahp", "ledger", "status")
#: Seconds after which a trouble is worth a look: an hour is too long for a test.
AFTER = ("--after", "3")


class Watcher:
    """Cron, on behalf of alice."""

    def __init__(self, node, other):
        self._pool = node.pool
        self._url = f"http://127.0.0.1:{other.port}/test/"
        self.room = node.pool.room("alice", "watched")

    def look(self):
        """Return what is said of the project, and why somebody should look at it."""
        done = self._pool.run("alice", *COMMAND, *AFTER, "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, done.stderr) == (1 if found["problems"] else 0, "")
        projects = [each for each in found["projects"] if each["url"] == self._url]
        why = [each["reason"] for each in found["problems"] if each["project"] == self._url]
        return (projects[0] if projects else {}), why

    def jobs(self):
        project, _ = self.look()
        return {job["state"]: job["number"] for job in project.get("jobs", ()) if job["number"]}


def test_states_are_counted_while_a_daemon_works_and_a_project_that_is_down_is_reported(node):
    other = node.others["watched"]
    watcher = Watcher(node, other)
    lines = ('+remote_BoincProject = "watched"', "arguments = gate.$(Process)")
    with other.running(hosts=1) as project:
        runs = watcher.room.submit(grid("gated", *lines))
        wait_for(lambda: watcher.jobs() == {"running": 1}, "a job that runs", pause=0.5)
        project.pause_volunteers()
        waits = watcher.room.submit(grid("gated", *lines, queue="queue 2"))
        wait_for(lambda: watcher.jobs() == {"running": 1, "queued": 2}, "jobs that wait", pause=0.5)
        found, why = watcher.look()
        assert (why, found["daemon"], found["known"]) == ([], True, True)
        # In the ledger from the first poll on.
        assert found["last_poll"] is not None
        assert found["last_asked"] is not None
        shown = node.pool.run("alice", *COMMAND).stdout
        assert project.url in shown
        assert "waiting on the project" in shown
    # Nothing that is normal has been told so far; a project that is down for long is none of it.
    wait_for(lambda: watcher.look()[1] == ["project"], "a project that is down", pause=0.5)
    text = node.pool.run("alice", *COMMAND, *AFTER).stdout
    assert "\nProblems\n" in text
    assert f"project: http://127.0.0.1:{other.port}/test/ for " in text
    with other.running(hosts=3):
        for gate in range(2):
            (other.gates / f"gate.{gate}").touch()
        runs.wait(COMPLETED)
        waits.wait(COMPLETED)
        wait_for(lambda: watcher.look()[1] == [], "a project that is up", pause=0.5)
        assert watcher.jobs() == {"done": 3}
