"""What HTCondor tells of a job's executable, and what becomes of it."""

import pytest

from tests.real_htcondor.pool import COMPLETED, HELD

pytestmark = pytest.mark.timeout(300)

#: No BoincApp: the executable names the app.
NAMED = """
universe = grid
grid_resource = batch boinc
executable = uppercase
transfer_input_files = in
transfer_output_files = out
log = job.log
"""


def test_an_executable_that_is_not_brought_names_the_app_and_one_that_is_holds_the_job(node):
    named = node.pool.room("alice", "named", {"in": "named\n"})
    # Only of a job that says so does condor_submit take an executable that is not there.
    named.write("job.sub", f"{NAMED}queue\n")
    refused = node.pool.run("alice", "condor_submit", "job.sub", cwd=named.inside)
    assert refused.returncode != 0
    job = named.submit(f"{NAMED}transfer_executable = false\nqueue\n")
    # Before HTCondor 25.12 only the transform of conf/ says that the file is no program.
    program = {"in": "program\n", "uppercase": "#!/bin/sh\n"}
    unused = node.pool.room("alice", "unused", program)
    ignored = unused.submit(f"{NAMED}transfer_executable = false\nqueue\n")
    brought = node.pool.room("alice", "brought", program)
    held = brought.submit(f"{NAMED}queue\n")
    [ad] = held.wait(HELD)
    assert 'the job has an executable ("uppercase")' in ad["HoldReason"]
    brought.ask("condor_rm", str(held.number))
    for cluster in (job, ignored):
        cluster.wait(COMPLETED)
    assert (named.read("out"), unused.read("out")) == ("NAMED\n", "PROGRAM\n")
