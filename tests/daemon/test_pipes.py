"""The installed command on pipes, against a local project: all the way and back."""

import signal
from functools import partial

import pytest

from boinc_gahp.rpc.client import WebRpcs
from tests.daemon.gridmanager import Gridmanager, statuses, submission
from tests.daemon.home import Home
from tests.daemon.process import TIMEOUT
from tests.helpers import wait_for
from tests.inside import workunit_names

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _project_as_ever(project):
    yield
    project.resume_volunteers()


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def await_done(gridmanager, batch):
    def done():
        found = statuses(gridmanager.do("BOINC_QUERY_BATCHES", "0", "1", batch))
        return found if set(found.values()) <= {"DONE", "ERROR"} else {}

    return wait_for(done, f"all jobs of {batch} are done", TIMEOUT)


def test_sigterm_in_the_middle_of_a_submit_and_the_same_submit_again(home, project):
    home.set_up(project)
    project.pause_volunteers()
    jobs = {f"again#{i}": ([], [home.write(f"in{i}", f"text {i}" * 1000), "in"]) for i in range(20)}
    line = submission("again", "uppercase", jobs)
    for rpc in ["get_templates", "create_batch", "upload_files"]:
        with home.daemon() as daemon:
            Gridmanager(daemon).begin("BOINC_SUBMIT", *line)
            wait_for(partial(home.has_done, rpc), f"{rpc} is done")
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.end()[0::2] == (0, b"")
    with home.gridmanager() as gridmanager:
        assert gridmanager.do("BOINC_SUBMIT", *line) == ["NULL"]
        assert gridmanager.do("BOINC_ABORT_JOBS", *jobs) == ["NULL"]
    assert sorted(workunit_names(project, "again")) == sorted(jobs)
    assert sum(name.startswith("again#") for name in workunit_names(project)) == len(jobs)


def _failed(home, gridmanager):
    """Submit a job whose program fails with 3, and one that is done; wait for both to end."""
    jobs = {
        "ends#1.0": (["--fail", "3"], [home.write("in0", "text"), "in"]),
        "ends#1.1": ([], [home.write("in1", "text"), "in"]),
    }
    assert gridmanager.do("BOINC_SUBMIT", *submission("ends", "uppercase", jobs)) == ["NULL"]
    return await_done(gridmanager, "ends")


def test_a_gridmanager_completes_a_job_whose_program_failed(home, project):
    home.set_up(project)
    fetch = ("BOINC_FETCH_OUTPUT", "ends#1.0", str(home.directory), "err", "SOME", "3")
    pairs = ("out", "out.txt", "stdout", "stdout", "err", "err")
    with home.gridmanager() as gridmanager:
        assert set(_failed(home, gridmanager).values()) == {"DONE"}
        null, exit_status, _elapsed, _cpu = gridmanager.do(*fetch, *pairs)
        assert (null, exit_status) == ("NULL", "3")
    text = (home.directory / "err").read_text()
    assert "job ends#1.0 failed on" in text
    assert "exit statuses of its instances: 3" in text
    assert (home.directory / "stdout").read_bytes() == b""
    assert not (home.directory / "out.txt").exists()
    with home.daemon() as daemon:
        daemon.line()
        assert daemon.ask(b"BOINC_QUERY_BATCHES 2 0 1 ends") == b"S"
        assert b"ends#1.0 ERROR" in daemon.await_results(1)[0], "a person sees the project's words"


def test_a_gridmanager_holds_a_job_whose_program_failed_if_the_settings_say_so(home, project):
    home.set_up(project, more='[htcondor]\nfailed_jobs = "hold"\n')
    with home.gridmanager() as gridmanager:
        assert _failed(home, gridmanager) == {"ends#1.0": "ERROR", "ends#1.1": "DONE"}


def test_a_gridmanager_holds_a_job_that_somebody_aborted_on_the_project(home, project):
    home.set_up(project)
    project.pause_volunteers()
    jobs = {"gone#1.0": ([], [home.write("in", "text"), "in"])}
    with home.gridmanager() as gridmanager:
        assert gridmanager.do("BOINC_SUBMIT", *submission("gone", "uppercase", jobs)) == ["NULL"]
        with WebRpcs(project.url, project.authenticator) as rpcs:
            rpcs.abort_jobs(["gone#1.0"])
        assert await_done(gridmanager, "gone") == {"gone#1.0": "ERROR"}
