"""What a person sees who tells the hosts of a running project to misbehave."""

import threading

import pytest

from boinc_gahp.localproject.backend.new_job import NewJob
from boinc_gahp.localproject.hosts.behaviour import clear, parse_behaviour, set_behaviours
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import Outcome, ServerState, ValidateState
from boinc_gahp.templates.types import InputTemplate, OutputTemplate
from tests.helpers import wait_for
from tests.localproject.on_host import out

VALID, INVALID = ValidateState.VALID, ValidateState.INVALID
SUCCESS, NO_REPLY = Outcome.SUCCESS, Outcome.NO_REPLY


def _add_app(project, name, program, **template):
    project.add_app(
        name,
        command=["{python}", "-I", "-S", "-c", program],
        input_template=InputTemplate(**template),
        output_template=OutputTemplate((out("out", no_delete=True),)),
        validator="bitwise",
    )


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=3) as project:
        gate = str(project.directory / "gate")
        program = (
            f"import os, time\nwhile not os.path.exists({gate!r}): time.sleep(0.01)\n"
            "open('out', 'w').write('x' * 100)"
        )
        _add_app(project, "gated", program, min_quorum=2, target_nresults=3)
        counts = {"max_error_results": 1, "max_total_results": 3}
        _add_app(project, "once", "open('out', 'w').write('x' * 100)", **counts)
        yield project


@pytest.fixture
def project(running):
    yield running
    clear(running.core.db)


def _tell(project, behaviour, host="", job=""):
    set_behaviours(project.core.db, [parse_behaviour(behaviour)], host=host, job=job)


def _results(project, workunit):
    return (
        project.core.db.connection()
        .execute(
            "SELECT r.*, domain_name FROM result r LEFT JOIN host h ON h.id = r.hostid "
            "WHERE workunitid = ? ORDER BY r.id",
            (workunit,),
        )
        .fetchall()
    )


def _workunit(project, workunit):
    return (
        project.core.db.connection()
        .execute("SELECT * FROM workunit WHERE id = ?", (workunit,))
        .fetchone()
    )


def _wait(project, workunit):
    def ended():
        project.check()
        results = _results(project, workunit)
        row = _workunit(project, workunit)
        over = all(result["server_state"] == ServerState.OVER for result in results)
        return over and (row["canonical_resultid"] or row["error_mask"]) != 0

    wait_for(ended, "the job has ended")


def _wait_for_hosts(project, workunit):
    wait_for(lambda: all(row["hostid"] for row in _results(project, workunit)), "all are given out")


def _wait_for_verdicts(project, workunit):
    wait_for(
        lambda: all(row["validate_state"] for row in _results(project, workunit)),
        "all results are judged",
    )


def test_a_lying_host_is_outvoted(project):
    _tell(project, "differ", host="volunteer-1")
    for _ in range(2):
        (workunit,) = project.create_work("gated", [NewJob()])
        # Were two through before the third host has asked, it would not be needed.
        _wait_for_hosts(project, workunit)
        (project.directory / "gate").touch()
        _wait(project, workunit)
        (project.directory / "gate").unlink()
        # Two that agree are enough; the third may be looked at later.
        _wait_for_verdicts(project, workunit)
        states = {row["domain_name"]: row["validate_state"] for row in _results(project, workunit)}
        assert states == {"volunteer-0": VALID, "volunteer-1": INVALID, "volunteer-2": VALID}
        canonical = _workunit(project, workunit)["canonical_resultid"]
        stored = next(row for row in _results(project, workunit) if row["id"] == canonical)
        assert stored["domain_name"] != "volunteer-1"


def test_a_vanished_result_times_out_and_goes_to_another(project):
    _tell(project, "vanishx1")
    (workunit,) = project.create_work("once", [NewJob()])
    wait_for(lambda: [row["hostid"] > 0 for row in _results(project, workunit)] == [True], "sent")
    with project.core.db.write() as connection:
        connection.execute(
            "UPDATE result SET report_deadline = 1 WHERE workunitid = ?", (workunit,)
        )
        connection.execute("UPDATE workunit SET transition_time = 1 WHERE id = ?", (workunit,))
    project.core.wake.ring()
    _wait(project, workunit)
    first, second = _results(project, workunit)
    assert (first["outcome"], second["outcome"]) == (NO_REPLY, SUCCESS)
    assert first["hostid"] != second["hostid"]


def test_a_job_told_to_fail_fails_on_every_host_and_others_do_not(project):
    project.pause_volunteers()
    bad, good = project.create_work("once", [NewJob(name="bad"), NewJob(name="good")])
    _tell(project, "fail=5", job="bad")
    project.resume_volunteers()
    for workunit in (bad, good):
        _wait(project, workunit)
    assert [row["exit_status"] for row in _results(project, bad)] == [5, 5]
    assert [row["outcome"] for row in _results(project, good)] == [SUCCESS]


def test_a_project_stops_whatever_its_hosts_wait_for(tmp_path):
    before = [each.name for each in threading.enumerate() if "-host-" in each.name]
    behaviours = ["vanish", "late=3600", "slow=1000000"]
    with LocalProject(tmp_path / "p", hosts=3) as project:
        _add_app(project, "quick", "open('out', 'w')")
        project.pause_volunteers()
        ids = project.create_work("quick", [NewJob(name=name) for name in behaviours])
        for name in behaviours:
            _tell(project, name, job=name)
        project.resume_volunteers()
        wait_for(
            lambda: [bool(row["hostid"]) for row in _all(project, ids)] == [True] * 3,
            "all jobs are given out",
        )
    assert [each.name for each in threading.enumerate() if "-host-" in each.name] == before
    with LocalProject(tmp_path / "p", hosts=3) as project:
        assert {r["server_state"] for r in _all(project, ids)} == {ServerState.IN_PROGRESS}
        assert [r["behaviour"] for r in _all(project, ids)] == behaviours


def _all(project, workunits):
    return [row for workunit in workunits for row in _results(project, workunit)]
