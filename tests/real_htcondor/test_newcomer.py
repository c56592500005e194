"""A newcomer's likeliest mistakes: HoldReason says what is wrong; once mended, a release does."""

from contextlib import contextmanager

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.pool import HELD, RUNNING
from tests.real_htcondor.submit import FILES, grid

pytestmark = pytest.mark.timeout(300)

#: HoldReasonCode and HoldReasonSubCode.
ACCOUNT = (2303, 0)


@contextmanager
def misplaced(path):
    """Have a file not be there in the block."""
    away = path.with_name(f"{path.name}.away")
    path.rename(away)
    try:
        yield
    finally:
        away.rename(path)


@contextmanager
def with_mode(path, mode):
    """Have a file with other permissions in the block."""
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


@contextmanager
def of_root(path):
    """Have an empty directory of root's be where a user's is to be, in the block."""
    with misplaced(path):
        path.mkdir(mode=0o755)
        try:
            yield
        finally:
            path.rmdir()


#: What is wrong in the block that each makes, and what HoldReason must have of it.
MISTAKES = {
    "no authenticator": (
        lambda home: misplaced(home / ".config/boinc_gahp"),
        ("/home/bob/.config/boinc_gahp/authenticator", "No such file", "chmod 600"),
    ),
    "for root alone": (
        lambda home: with_mode(home.parent.parent / "etc/boinc_gahp/boinc_gahp.toml", 0o600),
        (
            "no project's URL is set",
            "/etc/boinc_gahp/boinc_gahp.toml cannot be read (permission denied)",
        ),
    ),
}
OF_ROOT = ("/home/bob/.local/state/boinc_gahp belongs to user root", "install -d -m 700")


def submit(node, name):
    room = node.pool.room("bob", name, {"in": f"{name}\n"})
    return room.submit(grid("uppercase", *FILES))


def end_daemon(node):
    """End bob's gridmanager and with it his daemon: the next one reads the settings anew."""
    node.pool.kill("condor_gridmanager .*bob")
    wait_for(lambda: not node.pool.processes("condor_gridmanager .*bob"), "its end")


def held(cluster, *words):
    """See that a job is held, as it says what is wrong and what to do."""
    [job] = cluster.wait(HELD)
    reason = job["HoldReason"]
    for each in (*words, "Release the job when this is fixed"):
        assert each in reason
    assert (job["HoldReasonCode"], job["HoldReasonSubCode"]) == ACCOUNT
    assert reason in cluster.room.read("job.log")


def test_a_mistake_holds_the_job_with_what_to_do_and_a_release_sends_it(node):
    home = node.pool.root / "home/bob"
    before = sum(node.batches("gated").values())
    node.pool.ask("bob", "mkdir", "-p", ".local/state/boinc_gahp")
    end_daemon(node)
    with of_root(home / ".local/state/boinc_gahp"):
        refused = [submit(node, "of-root")]
        held(refused[0], *OF_ROOT)
    # Whatever is wrong later, this one goes on where it is.
    accepted = node.pool.room("bob", "accepted").submit(grid("gated", "arguments = accepted"))
    accepted.wait(RUNNING)
    for name, (making, words) in MISTAKES.items():
        end_daemon(node)
        with making(home):
            refused.append(submit(node, name.replace(" ", "-")))
            held(refused[-1], *words)
            assert accepted.job["JobStatus"] == RUNNING
    node.open("accepted")
    # The daemon that has refused the last one is still there, with the settings that it has read.
    for cluster in refused:
        cluster.room.ask("condor_release", str(cluster.number))
    for cluster in refused:
        cluster.wait()
        assert cluster.room.read("out") == cluster.room.read("in").upper()
    accepted.wait()
    assert accepted.room.read("out") == "accepted is open\n"
    assert sum(node.batches("gated").values()) == before + 1
