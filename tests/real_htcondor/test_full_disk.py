"""A full disk on the submit node: HTCondor's users see it, and nothing is lost."""

import os
import subprocess
from contextlib import contextmanager

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.pool import COMPLETED, HELD, RUNNING
from tests.real_htcondor.submit import grid, vanilla

pytestmark = pytest.mark.timeout(300)

TO_SMALL = (
    "transfer_input_files = in",
    "transfer_output_files = out",
    'transfer_output_remaps = "out = small/out"',
)


@contextmanager
def small(pool, user, directory, size):
    """Have a disk of so many bytes in a directory; yield a file that can fill it."""
    owner = (pool.root / "home" / user).stat()
    for path in (*reversed(directory.parents), directory):
        if not path.exists():
            path.mkdir(mode=0o700)
            os.chown(path, owner.st_uid, owner.st_gid)
    options = f"size={size},mode=700,uid={owner.st_uid},gid={owner.st_gid}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory)]
    subprocess.run(mount, check=True, timeout=60)
    try:
        yield directory / "filler"
    finally:
        _end_daemons(pool)
        subprocess.run(["umount", "--lazy", str(directory)], check=True, timeout=60)


def _end_daemons(pool):
    """Let no daemon have a file open; those that have jobs are started anew."""
    pool.kill(r"^condor_gridmanager")
    pool.kill(r"bin/boinc_gahp")


def _fill(filler):
    with filler.open("wb", buffering=0) as file:
        for block in (4096, 1):
            try:
                while True:
                    file.write(bytes(block))
            except OSError:
                pass


def _shown(cluster):
    """Return what ``condor_q`` shows of the first job: GridJobStatus, ExitReason."""
    job = f"{cluster.number}.0"
    return cluster.room.ask("condor_q", job, "-af", "GridJobStatus", "ExitReason")


def _wait_for(cluster, words):
    """Return what ``condor_q`` shows once these words are in it."""
    wait_for(lambda: words in _shown(cluster), f"condor_q shows {words!r}", pause=1)
    return _shown(cluster)


def test_a_job_whose_outputs_find_no_room_is_suspended_with_the_reason_and_goes_on(node):
    rooms = [node.pool.room("alice", name, {"in": "room\n"}) for name in ("full", "full-vanilla")]
    with (
        small(node.pool, "alice", rooms[0].directory / "small", 65536) as one,
        small(node.pool, "alice", rooms[1].directory / "small", 65536) as other,
    ):
        for filler in (one, other):
            _fill(filler)
        job = rooms[0].submit(grid("uppercase", *TO_SMALL))
        original = rooms[1].submit(vanilla("uppercase", *TO_SMALL))
        shown = _wait_for(job, "SUSPENDED")
        assert f"'{rooms[0].inside}/small/out' cannot be written: the disk is full" in shown
        _wait_for(original, "the disk is full")
        for filler in (one, other):
            filler.unlink()
        for room, cluster in zip(rooms, (job, original), strict=True):
            cluster.wait(COMPLETED)
            assert room.read("small/out") == "ROOM\n"
            left = ("condor_history", str(cluster.number), "-af", "ExitCode", "ExitReason")
            assert room.ask(*left).split() == ["0", "undefined"]


def test_a_full_state_directory_is_told_of_jobs_and_holds_new_ones_and_all_go_on(node):
    room = node.pool.room("bob", "full-state", {"in": "ledger\n"})
    state = node.pool.root / "home/bob/.local/state/boinc_gahp"
    _end_daemons(node.pool)
    with small(node.pool, "bob", state, 2 << 20) as filler:
        job = room.submit(grid("gated", "arguments = full-state"))
        job.wait(RUNNING)
        _fill(filler)
        node.open("full-state")
        shown = _wait_for(job, "SUSPENDED")
        assert "ledger.sqlite cannot be written: database or disk is full" in shown
        new = room.submit(grid("uppercase", *TO_SMALL[:2]))
        [held] = new.wait(HELD)
        assert "database or disk is full; check the disk's free space" in held["HoldReason"]
        filler.unlink()
        room.ask("condor_release", str(new.number))
        job.wait(COMPLETED)
        new.wait_until(lambda ad: ad["JobStatus"] != HELD, "it is released")
        new.wait(COMPLETED)
    assert "LEDGER" in room.read("out")
