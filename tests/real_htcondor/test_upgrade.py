"""Another version is installed while jobs are under way, as the documentation says."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections import Counter
from contextlib import closing

import pytest

from boinc_gahp.ledger._migrations import VERSION
from tests.helpers import wait_for
from tests.install.conftest import ROOT, tracked_files
from tests.real_htcondor.node import command_lines
from tests.real_htcondor.pool import RUNNING
from tests.real_htcondor.submit import NUMBERED, grid, vanilla

pytestmark = pytest.mark.timeout(300)

NEXT = "99.1.0"
#: What installs the program from an archive of wheels is what upgrades it.
RECIPE = (ROOT / "tests/install/recipe.sh").read_text().split("\n\n")[1]
#: What the old daemon says at its end.
ENDS = "was replaced by another while it ran"
DAEMON = r"/opt/boinc_gahp/bin/boinc_gahp $"


@pytest.fixture
def source(pool):
    """A directory in the chroot with the source of a next version, in which one was built before.

    It has a migration of the ledger more, and an archive of the new wheel; what that needs is
    installed. What is installed is put back afterwards.
    """
    directory, installed = pool.root / "root/boinc_gahp", pool.root / "opt/boinc_gahp"
    shutil.rmtree(directory, ignore_errors=True)
    for name in tracked_files():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, directory / name)
    version = directory / "boinc_gahp/_version.py"
    version.write_text(re.sub('(__version__ = ").*"', rf'\g<1>{NEXT}"', version.read_text()))
    _edit(
        directory / "boinc_gahp/ledger/_migrations.py",
        "\nVERSION: Final = len(MIGRATIONS)",
        '\nMIGRATIONS = (*MIGRATIONS, ("CREATE TABLE of_next_version (number INTEGER)",))  # type: '
        "ignore\nVERSION: Final = len(MIGRATIONS)",
    )
    (directory / "build/lib/boinc_gahp").mkdir(parents=True)
    (directory / "build/lib/boinc_gahp/gone.py").touch()
    (directory / "dist").mkdir()
    wheels = directory / "wheels"
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, directory]
    subprocess.run(pip, check=True, timeout=100)
    with tarfile.open(directory / f"dist/boinc_gahp-{NEXT}.tar", "w") as archive:
        archive.add(wheels, ".")
    (installed / "wheels").mkdir(exist_ok=True)
    (installed / "wheels/boinc_gahp-0.0.9-py3-none-any.whl").touch()
    yield "/root/boinc_gahp"
    pool.control("make")
    (pool.root / "usr/local/bin/boinc_gahp").unlink(missing_ok=True)
    shutil.rmtree(directory)


def _edit(path, old, new):
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


def _jobs(node, name, text):
    return node.pool.room("alice", name, {"in": f"{name}\n"}).submit(text)


def test_jobs_under_way_during_an_upgrade_each_run_once_and_end(node, source):
    pool = node.pool
    gate = "upgraded"
    sent = [
        _jobs(node, "running", grid("gated", f"arguments = {gate}", *NUMBERED, queue="queue 8")),
        _jobs(node, "routed", vanilla("gated", f"arguments = {gate}")),
    ]
    sent[0].wait_until(lambda job: job["JobStatus"] == RUNNING, "a job runs")
    wait_for(lambda: command_lines(node.project).count(gate) == 9, "all on the project", pause=0.5)
    old = pool.processes(DAEMON)
    assert len(old) == 1
    # Jobs that are not sent yet when the program is replaced, and others while it is.
    sent.append(
        _jobs(node, "waiting", grid("gated", f"arguments = {gate}", *NUMBERED, queue="queue 20"))
    )
    upgrade = subprocess.Popen(
        ["chroot", pool.root, "env", "PIP_QUIET=1", "sh", "-ec", f"cd {source}\n{RECIPE}"],
        env={"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": "/root"},
    )
    try:
        sent.append(
            _jobs(node, "during", grid("gated", f"arguments = {gate}", *NUMBERED, queue="queue 5"))
        )
        assert upgrade.wait(200) == 0
    finally:
        upgrade.kill()
        upgrade.wait()
    told = pool.ask("alice", "/usr/local/bin/boinc_gahp", "--version")
    assert told == f"boinc_gahp {NEXT}\n"
    assert not list(pool.root.glob("opt/boinc_gahp/lib/python3*/site-packages/boinc_gahp/gone.py"))
    # What cron does meanwhile, or the user: it carries the ledger forward under the old daemon.
    pool.ask("alice", "/usr/local/bin/boinc_gahp", "ledger", "reconcile")
    # It ends with 1 where there are problems, as jobs of other tests have had.
    done = pool.run("alice", "/usr/local/bin/boinc_gahp", "ledger", "status", "--json")
    assert done.returncode in (0, 1)
    assert json.loads(done.stdout)["projects"]
    log = pool.root / "home/alice/.local/state/boinc_gahp/boinc_gahp.log"
    wait_for(
        lambda: f"boinc_gahp {NEXT} begins" in log.read_text("utf-8").partition(ENDS)[2],
        "the new version at work",
        timeout=100,
        pause=0.5,
    )
    sent.append(
        _jobs(node, "after", grid("gated", f"arguments = {gate}", *NUMBERED, queue="queue 3"))
    )
    node.open(gate)
    for cluster in sent:
        jobs = cluster.wait(timeout=150)
        assert {(job["ExitCode"], job.get("NumHolds", 0)) for job in jobs} == {(0, 0)}
    assert set(pool.processes(DAEMON)).isdisjoint(old)
    for cluster in (sent[0], *sent[2:]):
        outputs = [cluster.room.read(f"out.{number}") for number in range(cluster.count)]
        assert outputs == [f"{gate} is open\n"] * cluster.count
    assert sent[1].room.read("out") == f"{gate} is open\n"
    # None lost, none twice.
    made = Counter(command_lines(node.project))
    assert made[gate] == sum(cluster.count for cluster in sent)
    with closing(sqlite3.connect(log.with_name("ledger.sqlite"))) as ledger:
        assert ledger.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
