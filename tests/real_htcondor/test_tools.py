"""HTCondor's other tools: Python bindings, htcondor, condor_wait, condor_watch_q."""

import pytest

from tests.real_htcondor.submit import FILES, grid

pytestmark = pytest.mark.timeout(300)


_BINDINGS = """
import htcondor2, sys
description = htcondor2.Submit(open(sys.argv[1]).read())
submitted = htcondor2.Schedd().submit(description, count=2)
log = htcondor2.JobEventLog("job.log")
ended = []
for event in log.events(stop_after=120):
    if event.type == htcondor2.JobEventType.JOB_TERMINATED:
        ended.append((event.proc, event["ReturnValue"]))
        if len(ended) == 2:
            break
print(submitted.cluster(), sorted(ended))
"""


@pytest.fixture
def room(node):
    room = node.pool.room("alice", "tools", {"in": "tools\n"})
    room.write("job.sub", grid("uppercase", *FILES, 'transfer_output_remaps = "out = $(Process)"'))
    return room


def test_the_python_bindings_submit_and_see_the_events(room):
    room.write("submit.py", _BINDINGS)
    printed = room.ask("/usr/bin/python3", "submit.py", "job.sub", timeout=180)
    assert printed.rstrip().endswith(" [(0, 0), (1, 0)]")
    assert [room.read(name) for name in "01"] == ["TOOLS\n"] * 2


def test_htcondor_job_submits_and_condor_wait_and_watch_q_end_with_the_job(room):
    room.ask("htcondor", "job", "submit", "job.sub")
    room.ask("condor_wait", "-wait", "120", "job.log", timeout=150)
    assert room.read("0") == "TOOLS\n"
    watched = room.ask("condor_watch_q", "-files", "job.log", "-exit", "all,done,0", "-no-color")
    assert "1 completed" in watched
