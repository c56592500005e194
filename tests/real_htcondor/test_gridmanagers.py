"""A user's jobs that HTCondor divides among several gridmanagers, each with a boinc_gahp."""

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.pool import RUNNING
from tests.real_htcondor.submit import NUMBERED, grid, vanilla

pytestmark = pytest.mark.timeout(300)

DAEMON = r"/opt/boinc_gahp/bin/boinc_gahp\s*$"
GRIDMANAGER = r"^condor_gridmanager"


@pytest.fixture
def two_jobs_each(pool):
    """The expression of ``conf/``, but with two jobs for a gridmanager instead of 2,500."""
    shipped = pool.ask("root", "condor_config_val", "GRIDMANAGER_SELECTION_EXPR").strip()
    assert " / 2500 " in shipped
    with pool.configured(f"GRIDMANAGER_SELECTION_EXPR = {shipped.replace('2500', '2')}"):
        wait_for(lambda: not pool.processes(GRIDMANAGER), "the gridmanagers have ended", pause=0.5)
        yield


def test_jobs_of_several_gridmanagers_run_once_each_though_all_daemons_are_killed(
    node, two_jobs_each
):
    room = node.pool.room("alice", "divided")
    since = max(node.batches("gated"), default=0)
    cluster = room.submit(grid("gated", "arguments = divided", *NUMBERED, queue="queue 6"))
    wait_for(lambda: len(node.pool.processes(DAEMON)) == 3, "there are three daemons", pause=0.5)
    cluster.wait(RUNNING, count=4)
    assert len(node.pool.processes(GRIDMANAGER)) == 3
    # A job of the second leaves, and one of the third.
    room.ask("condor_rm", f"{cluster.number}.1", f"{cluster.number}.5")
    # condor_rm gives them their state at once; the daemons are asked before they leave the queue.
    wait_for(lambda: sum(job["Left"] for job in cluster.jobs()) == 2, "both have left", pause=0.5)
    assert node.pool.kill(DAEMON) == 3
    node.open("divided")
    cluster.wait(count=4)
    assert {name for name in room.files() if name.startswith("out")} == {
        "out.0",
        "out.2",
        "out.3",
        "out.4",
    }
    assert sum(node.batches("gated", since).values()) == 6


def test_copies_of_routed_jobs_are_divided_as_their_originals_are(node, two_jobs_each):
    room = node.pool.room("bob", "routed-divided")
    cluster = room.submit(vanilla("gated", "arguments = routed-divided", queue="queue 4"))
    wait_for(lambda: len(node.pool.processes(DAEMON)) == 2, "there are two daemons", pause=0.5)
    node.open("routed-divided")
    cluster.wait()
