"""kill -9 of everything that takes part, while a hundred jobs are under way."""

import random
import sys
import threading
from collections import Counter

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.node import command_lines
from tests.real_htcondor.pool import COMPLETED
from tests.real_htcondor.submit import NUMBERED, grid

pytestmark = pytest.mark.timeout(600)

JOBS = 100


def test_100_jobs_survive_kill_9_of_every_part_and_each_runs_once(node):
    other = node.others["killed"]
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    sys.stdout.write(f"seed {seed}\n")
    files = {f"in.{number}": f"number {number}\n" for number in range(JOBS)}
    room = node.pool.room("alice", "killed", files)
    project = [other.start()]

    def kill_project():
        project[0].kill()
        project[0].wait()
        project[0] = other.start()
        return 1

    parts = {
        "daemon": lambda: node.pool.kill(r"bin/boinc_gahp"),
        "gridmanager": lambda: node.pool.kill(r"^condor_gridmanager"),
        "schedd": lambda: node.pool.kill(r"^condor_schedd"),
        "project": kill_project,
    }
    # Each part twice, in any order, so that a kill meets what the one before has left.
    order = [*parts, *parts]
    chance.shuffle(order)
    try:
        cluster = room.submit(
            grid(
                "uppercase",
                '+remote_BoincProject = "killed"',
                "arguments = --number $(Process) --sleep 0.5",
                "transfer_input_files = in.$(Process)",
                *NUMBERED,
                "error = err.$(Process)",
                queue=f"queue {JOBS}",
            )
        )
        for part in order:
            threading.Event().wait(chance.uniform(0.5, 6))
            # Where it has not come back from the last kill yet, there is nothing to kill.
            wait_for(parts[part], f"{part} runs", pause=0.2)
        # Commands are of no use until there is a schedd again.
        wait_for(
            lambda: node.pool.run("alice", "condor_q").returncode == 0, "the schedd", pause=0.5
        )
        jobs = cluster.wait(COMPLETED, timeout=400)
    finally:
        project[0].terminate()
        project[0].wait()
    assert {job["ExitCode"] for job in jobs} == {0}
    for number in range(JOBS):
        assert room.read(f"out.{number}") == f"NUMBER {number}\n"
        # Once, not one under the other.
        assert room.read(f"err.{number}").count("starting uppercase") == 1
    with other.running(hosts=0) as stopped:
        made = Counter(command_lines(stopped))
    assert made == {f"--number {number} --sleep 0.5": 1 for number in range(JOBS)}
