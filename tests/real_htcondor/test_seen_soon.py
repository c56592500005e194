"""How soon HTCondor sees what has happened, with the intervals that ``conf/`` sets."""

from contextlib import suppress

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.pool import REMOVED
from tests.real_htcondor.submit import FILES, grid, words

pytestmark = pytest.mark.timeout(300)


#: A program that ends at once, before it has said a word, when Bob's jobs first want it.
_DIES_ONCE = """#!/bin/sh
if [ "$(id -un)" = bob ] && mkdir /tmp/died 2>/dev/null; then exit 1; fi
exec /opt/boinc_gahp/bin/boinc_gahp
"""


@pytest.fixture
def shipped(pool):
    """HTCondor's own intervals, but for those that ``conf/`` sets; a program that dies once."""
    program = pool.root / "tmp" / "dies_once"
    program.write_text(_DIES_ONCE, "ascii")
    program.chmod(0o755)
    with suppress(FileNotFoundError):
        (pool.root / "tmp" / "died").rmdir()
    config_d = pool.root / "etc/condor/config.d"
    short, aside = config_d / "90-short.conf", pool.root / "tmp" / "90-short.conf"
    short.rename(aside)
    try:
        with pool.configured("BOINC_GAHP = /tmp/dies_once"):
            yield
    finally:
        aside.rename(short)
        pool.ask("root", "condor_reconfig")


def test_jobs_go_on_within_a_minute_of_an_end_of_the_daemon_while_a_job_of_the_pool_is_idle(
    node, shipped
):
    pool = node.pool
    room = pool.room("alice", "count", {"in": "soon\n"})
    idle = room.submit("executable = /bin/true\nrequirements = false\nqueue\n")
    jobs = room.submit(grid("uppercase", words(["--sleep", "5"]), *FILES))
    wait_for(lambda: "027" in jobs.events("job.log"), "it is accepted", 60, pause=0.5)
    pool.kill(r"/opt/boinc_gahp/bin/boinc_gahp")
    # Nothing but the schedd's next count starts a gridmanager: by HTCondor's own interval, 246 s.
    jobs.wait(timeout=100)
    room.ask("condor_rm", str(idle.number))
    idle.wait(REMOVED)


def test_an_end_is_seen_within_a_minute_and_a_daemon_that_died_at_once_is_started_again(
    node, shipped
):
    text = grid("uppercase", *FILES)
    rooms = [node.pool.room(user, "soon", {"in": "soon\n"}) for user in ("alice", "bob")]
    alice, bob = (room.submit(text) for room in rooms)
    # With HTCondor's own intervals, Alice's took 126 s, and Bob's stood still for 300.
    alice.wait(timeout=100)
    assert rooms[0].read("out") == "SOON\n"
    # Accepted, run, ended: what was never seen to run is told to have.
    assert alice.events("job.log") == ["000", "027", "001", "005"]
    wait_for(lambda: "027" in bob.events("job.log"), "Bob's is accepted", 100, pause=0.5)
    assert bob.events("job.log")[:3] == ["000", "026", "025"]
    rooms[1].ask("condor_rm", str(bob.number))
    bob.wait(REMOVED)
