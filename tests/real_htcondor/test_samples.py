"""The files of ``conf/``, used as they are."""

from pathlib import Path

import pytest

from boinc_gahp.localproject.hosts.hosts import Behaviour, set_behaviours
from tests.real_htcondor.pool import ROOT

pytestmark = pytest.mark.timeout(300)

#: Of a job whose every instance fails, by the template of ``uppercase``.
_INSTANCES = 3
SAMPLES = ROOT / "conf" / "submit"


def _room(node, name, files):
    """Return a directory with all samples in it."""
    samples = {path.name: path.read_text("utf-8") for path in SAMPLES.iterdir()}
    return node.pool.room("alice", name, {**samples, **files})


def test_the_settings_for_htcondor_are_taken(pool):
    installed = {path.name for path in (pool.root / "etc/condor/config.d").iterdir()}
    assert "20-boinc_gahp.condor.conf" in installed
    log = (pool.root / "var/log/condor/JobRouterLog").read_text("utf-8", "replace")
    assert "CONFIGURATION ERROR" not in log
    assert pool.ask("root", "condor_config_val", "BOINC_GAHP").strip() == (
        "/opt/boinc_gahp/bin/boinc_gahp"
    )
    routes = pool.ask("root", "condor_config_val", "JOB_ROUTER_ROUTE_NAMES")
    assert routes.split() == ["Boinc"]
    shown = pool.ask("root", "condor_config_val", "GRIDMANAGER_MAX_SUBMITTED_JOBS_PER_RESOURCE")
    assert int(shown) == 20000


def test_the_settings_for_htcondor_9_and_before_can_be_read(pool):
    # There is no such HTCondor in Debian any more; a setting is read as it was then.
    file = pool.root / "tmp" / "condor9.conf"
    file.write_text((ROOT / "conf" / "10-boinc_gahp.condor9.conf").read_text("utf-8"), "utf-8")
    ask = ("env", "CONDOR_CONFIG=/tmp/condor9.conf", "condor_config_val")
    names = ("BOINC_GAHP", "GRIDMANAGER_GAHP_CALL_TIMEOUT", "GRIDMANAGER_MAX_PENDING_REQUESTS")
    shown = pool.ask("root", *ask, *names).split()
    assert shown == ["/opt/boinc_gahp/bin/boinc_gahp", "3600", "50"]


def test_grid_vanilla_and_remaps_samples_run(node):
    grid = _room(node, "sample-grid", {"in": "grid\n"})
    vanilla = _room(node, "sample-vanilla", {"in": "vanilla\n"})
    files = {"in0": "a\n", "in1": "b\n", "results/.keep": ""}
    remaps = _room(node, "sample-remaps", files)
    again = _room(node, "sample-again", {"in": "again\n"})
    clusters = [
        grid.submit_file("grid.sub"),
        vanilla.submit_file("vanilla.sub"),
        remaps.submit_file("remaps.sub"),
        again.submit_file("again.sub"),
    ]
    for cluster in clusters:
        cluster.wait()
    assert [grid.read(f"out.{number}") for number in range(2)] == ["GRID\n"] * 2
    assert vanilla.read("out") == "VANILLA\n"
    assert remaps.read("results/joined.txt") == "a\nb\n"
    assert "args --optional" in (node.pool.root / "home/alice/sizes.txt").read_text()
    assert again.read("out") == "AGAIN\n"


def test_three_jobs_of_a_dag_run_one_after_the_other_and_what_fails_is_tried_again(node):
    room = _room(node, "sample-dag", {"in": "dag\n"})
    # All volunteers that the first job gets to fail, and one of the next that it is tried with.
    set_behaviours(node.project.core.db, [Behaviour("fail", 11, _INSTANCES + 1)])
    told = room.run_dag("workflow.dag")
    assert "EXITING WITH STATUS 0" in told
    assert "Retrying node First (retry #1 of 2)" in told
    assert room.read("workflow.log").count("(return value 11)") == 1
    assert [room.read(name) for name in ("first", "second", "third")] == ["DAG\n"] * 3
    assert "starting uppercase" in room.read("third.err")


def test_the_line_for_cron_settles_the_ledger_and_says_nothing(node):
    text = (ROOT / "conf" / "boinc_gahp.cron").read_text("utf-8")
    [line] = [line for line in text.splitlines() if line and not line.startswith("#")]
    command = line.split(maxsplit=5)[5]
    done = node.pool.run("alice", "sh", "-c", command, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_check_finds_the_submit_node_in_order(node):
    checked = node.pool.run("alice", "/opt/boinc_gahp/bin/boinc_gahp", "check", "--app", "speak")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "HTCondor" in checked.stdout


def test_every_sample_is_used_here_or_with_containers():
    users = (Path(__file__), Path(__file__).with_name("test_containers.py"))
    text = "".join(path.read_text("utf-8") for path in (*users, SAMPLES / "workflow.dag"))
    assert [path.name for path in SAMPLES.iterdir() if path.name not in text] == []
