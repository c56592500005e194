"""What goes wrong, and whether a scientist who reads HoldReason knows what to do."""

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.pool import COMPLETED, HELD, IDLE, REMOVED
from tests.real_htcondor.submit import FILES, grid, words

pytestmark = pytest.mark.timeout(300)


#: Submit files of jobs that cannot be done, the files they have, and what must be in HoldReason.
REFUSED = {
    "no-such-app": (grid("nosuchapp"), {}, ("nosuchapp",)),
    "bad-authenticator": (
        grid("uppercase", '+remote_BoincProject = "locked"', *FILES),
        {"in": "x"},
        ("bad authenticator", "run boinc_gahp login URL", "Release the job when this is fixed"),
    ),
    "no-such-project": (
        grid("uppercase", '+remote_BoincProject = "elsewhere"', *FILES),
        {"in": "x"},
        ("elsewhere", "locked", "away"),
    ),
    "space-in-argument": (
        grid("uppercase", *FILES, words(["fine", "not fine"])),
        {"in": "x"},
        ('argument "not fine"', "white space", "escape_command_lines"),
    ),
    "environment": (
        grid("uppercase", *FILES, 'environment = "MODE=fast"'),
        {"in": "x"},
        ("MODE", "environment", "volunteers"),
    ),
    "no-such-output": (
        grid("uppercase", "transfer_input_files = in", "transfer_output_files = result"),
        {"in": "x"},
        ("result", "out"),
    ),
    "remap-to-nowhere": (
        grid("uppercase", *FILES, 'transfer_output_remaps = "out = nowhere/out"'),
        {"in": "x"},
        ("nowhere",),
    ),
}


#: Of a user whose project has no command lines escaped.
OF_BOB = {"space-in-argument"}


@pytest.fixture(scope="module")
def sent(node):
    """The jobs of REFUSED, and one that crashes, all by alice at once."""
    clusters = {
        name: node.pool.room("bob" if name in OF_BOB else "alice", name, files).submit(text)
        for name, (text, files, _) in REFUSED.items()
    }
    clusters["crashy"] = node.pool.room("alice", "crashy").submit(
        grid("crashy", '+remote_BoincFailedJobs = "hold"')
    )
    return clusters


@pytest.mark.parametrize("name", REFUSED)
def test_a_job_that_cannot_be_done_is_held_with_what_to_do(name, sent):
    [job] = sent[name].wait(HELD)
    reason = job["HoldReason"]
    for word in REFUSED[name][2]:
        assert word in reason
    assert "Traceback" not in reason
    assert "0" * 32 not in reason


def test_a_released_job_is_tried_anew(sent, node):
    cluster = sent["crashy"]
    cluster.wait(HELD)
    before = len(node.batches("crashy"))
    cluster.room.ask("condor_release", str(cluster.number))
    cluster.wait_until(
        lambda job: job["JobStatus"] == HELD and job["NumHolds"] == 2, "it is held again"
    )
    assert len(node.batches("crashy")) == before + 1


def test_a_job_waits_for_a_project_that_is_down_and_is_not_held(node):
    other = node.others["away"]
    room = node.pool.room("bob", "away", {"in": "patience\n"})
    cluster = room.submit(grid("uppercase", '+remote_BoincProject = "away"', *FILES))
    gone = room.pool.room("bob", "gone", {"in": "x"}).submit(
        grid("uppercase", '+remote_BoincProject = "away"', *FILES)
    )
    listed = _wait_for_trouble(node, cluster)
    assert "away" in listed or str(other.port) in listed
    assert cluster.job["JobStatus"] == IDLE
    # Removing a job does not need the project.
    gone.room.ask("condor_rm", str(gone.number))
    gone.wait(REMOVED)
    with other.running():
        cluster.wait(COMPLETED)
    assert room.read("out") == "PATIENCE\n"


def _wait_for_trouble(node, cluster):
    """Return what ``ledger status`` says once it tells that the project cannot be reached."""
    command = ("/opt/boinc_gahp/bin/boinc_gahp", "ledger", "status")

    def listed():
        assert cluster.job["JobStatus"] == IDLE
        text = node.pool.run("bob", *command).stdout
        return text if "connect" in text.lower() else ""

    return wait_for(listed, "ledger status tells of the project", pause=0.5)
