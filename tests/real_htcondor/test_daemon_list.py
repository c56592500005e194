"""DAEMON_LIST, which other files of an admin's set as well."""

import pytest

from tests.helpers import wait_for
from tests.real_htcondor.submit import vanilla

pytestmark = pytest.mark.timeout(300)

LIST = "DAEMON_LIST = MASTER, SHARED_PORT, COLLECTOR, NEGOTIATOR, SCHEDD"


@pytest.fixture
def etc(pool):
    """HTCondor's directory; what is added to it is removed afterwards."""
    etc = pool.root / "etc/condor"
    before = set(etc.rglob("*"))
    yield etc
    for path in set(etc.rglob("*")) - before:
        path.unlink()
    pool.ask("root", "condor_reconfig")
    wait_for(lambda: _routers(pool), "the Job Router", pause=0.2)


def _routers(pool):
    return pool.processes("^condor_job_router")


def _check(pool):
    done = pool.run("alice", "/opt/boinc_gahp/bin/boinc_gahp", "check")
    return done.returncode, [line for line in done.stdout.splitlines() if "Job Router" in line]


def test_condor_reconfig_starts_the_job_router_and_ends_it(pool, etc):
    [first] = wait_for(lambda: _routers(pool), "the Job Router", pause=0.2)
    ours = etc / "config.d/zz-boinc_gahp.router.conf"
    text = ours.read_text("utf-8")
    ours.write_text("")
    try:
        pool.ask("root", "condor_reconfig")
        wait_for(lambda: not _routers(pool), "no Job Router", pause=0.2)
    finally:
        ours.write_text(text, "utf-8")
    pool.ask("root", "condor_reconfig")
    [second] = wait_for(lambda: _routers(pool), "the Job Router", pause=0.2)
    assert first != second


def test_other_files_that_set_it_do_no_harm_or_check_names_them(node, etc):
    pool = node.pool
    # As version 0.1.0 had it, and as a site has it.
    (etc / "config.d/19-boinc_gahp.condor.conf").write_text(
        "DAEMON_LIST = $(DAEMON_LIST) JOB_ROUTER\n"
        "JOB_ROUTER_SOURCE_JOB_CONSTRAINT = Nobody\n"
        "JOB_ROUTER_ROUTE_NAMES = $(JOB_ROUTER_ROUTE_NAMES) Boinc\n"
        "JOB_TRANSFORM_NAMES = $(JOB_TRANSFORM_NAMES) Boinc\n"
    )
    (etc / "config.d/99-site.conf").write_text(f"{LIST}\n")
    pool.ask("root", "condor_reconfig")
    status, told = _check(pool)
    assert (status, [line.split()[0] for line in told]) == (0, ["ok"])
    # What is read after all of them.
    local = etc / "condor_config.local"
    local.write_text(f"# Of this machine.\n{LIST}\n")
    pool.ask("root", "condor_reconfig")
    wait_for(lambda: not _routers(pool), "no Job Router", pause=0.2)
    status, told = _check(pool)
    assert status == 1
    assert told[0].split(": ", 1)[1] == (
        "there is a route to BOINC (Boinc), but no JOB_ROUTER in DAEMON_LIST, which is last set in "
        "/etc/condor/condor_config.local, line 2; add it there, and run condor_reconfig"
    )
    # As it says.
    local.write_text(f"# Of this machine.\n{LIST} JOB_ROUTER\n")
    pool.ask("root", "condor_reconfig")
    wait_for(lambda: _routers(pool), "the Job Router", pause=0.2)
    assert _check(pool)[0] == 0
    job = pool.room("alice", "listed", {"in": "listed\n"}).submit(
        vanilla("uppercase", "transfer_input_files = in", "transfer_output_files = out")
    )
    job.wait()
    assert job.room.read("out") == "LISTED\n"
