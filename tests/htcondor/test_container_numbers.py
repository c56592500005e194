"""A container job's number always goes with the script that has its own arguments at that place."""

import os
import re
import shutil

import pytest

from boinc_gahp.containers.image import Image
from boinc_gahp.htcondor._description import JobDescription
from boinc_gahp.submit.container_jobs import ContainerJob
from boinc_gahp.submit.generated_files import Member
from boinc_gahp.submit.trees import look
from tests import faultproxy
from tests.helpers import wait_for
from tests.htcondor.desk import desk_of, kill_at, lose_track
from tests.localproject.in_containers import APP, local_project  # noqa: F401  (a fixture)

pytestmark = pytest.mark.usefixtures("sending")


def accept(desk, count, *, padding=0, tree=None, first=0):
    """Have HTCondor hand over container jobs whose only argument begins with their number."""
    program = desk.file(b"#!/bin/sh\n")
    trees = () if tree is None else (Member(tree.name, str(tree), look(str(tree)).stamp),)
    image = Image("registry", "docker.io/library/busybox")
    inside = ContainerJob(image, "./fit.sh", is_input=True, trees=trees)
    more = {"outputs": ("result",), "container": inside}
    return [
        desk.accept_over(program, APP, (f"number{number:04}{'x' * padding}",), "fit.sh", **more)
        for number in range(first, first + count)
    ]


def run_by(desk):
    """Return what the script of each workunit that lives runs, by the workunit's name."""
    found = {}
    for name in desk.alive_workunits():
        [(text,)] = desk.site.rows("SELECT xml_doc FROM workunit WHERE name = ?", name)
        [number] = re.findall(r"<command_line>\s*([0-9]+)\s*</command_line>", text)
        [script] = re.findall(r"<file_name>([^<]+)</file_name>\s*<open_name>run\.sh<", text)
        [path] = desk.site.local.directory.rglob(script)
        [argument] = re.findall(rf"(?m)^{number}\) set -- (number[0-9]+)x*;;$", path.read_text())
        found[name] = argument
    return found


def check(desk, ids):
    """Assert that these jobs have one workunit each, which runs what the job is to run."""
    desk.check_once(ids)
    wanted = {}
    for job_id in ids:
        row = desk.row(job_id)
        [argument] = JobDescription.from_json(row.description).args
        wanted[str(row.job_name)] = argument.rstrip("x")
    assert run_by(desk) == wanted


def test_jobs_in_several_scripts_run_their_own_arguments(desk):
    ids = accept(desk, 200, padding=1000)
    desk.run()
    check(desk, ids)


def test_jobs_that_are_on_the_project_do_not_need_their_directory_any_more(site, desk, tmp_path):
    (model := tmp_path / "model").mkdir()
    (model / "weights").write_text("1")
    lose_track(site, faultproxy.lose_reply())
    ids = accept(desk, 20, tree=model)
    desk.turn()
    [batch] = desk.batches("sent")
    shutil.rmtree(model)
    site.proxy.heal()
    desk.run()
    check(desk, ids)
    assert desk.row(ids[0]).batch_id == batch.id


def test_a_batch_is_not_given_up_while_it_is_unknown_whether_it_is_there(site, desk, tmp_path):
    (model := tmp_path / "model").mkdir()
    lose_track(site, faultproxy.lose_reply())
    ids = accept(desk, 2, tree=model)
    desk.turn()
    (model / "weights").write_text("2")
    wait_for(lambda: desk.is_idle() or site.proxy.count("query_batch") > 12, "some attempts", 30)
    assert desk.batches("sent")
    site.proxy.heal()
    desk.run()
    check(desk, ids)


def test_a_file_in_a_directory_that_cannot_be_read_holds_only_the_jobs_with_it(desk, tmp_path):
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
    ids = accept(desk, 3, tree=tmp_path / "good")
    bad = accept(desk, 1, tree=tmp_path / "bad", first=3)
    os.mkfifo(tmp_path / "bad" / "pipe")
    desk.run()
    assert desk.states(bad) == ["failed"]
    assert "pipe" in str(desk.row(bad[0]).hold_reason)
    check(desk, ids)


@pytest.mark.long
@pytest.mark.parametrize(
    ("step", "carried_out"),
    [
        ("create_batch", True),
        ("query_files", True),
        ("upload_files", True),
        ("submit_batch", True),
        ("submit_batch", False),
    ],
)
def test_after_a_kill_each_job_runs_its_own_arguments(site, step, *, carried_out):
    with desk_of(site) as desk:
        ids = accept(desk, 120, padding=1000)
    hang = kill_at(site, step, carried_out=carried_out)
    with desk_of(site) as desk:
        cancelled = ids[::4]
        for job_id in cancelled:
            desk.context.jobs.cancel(job_id)
        more = accept(desk, 10, padding=1000, first=len(ids))
        desk.run()
        hang.release()
        left = [job_id for job_id in ids if job_id not in cancelled] + more
        assert desk.states(left) == ["queued"] * len(left)
        runs = run_by(desk)
        assert len(set(runs.values())) == len(runs)
        for job_id in left:
            row = desk.row(job_id)
            [argument] = JobDescription.from_json(row.description).args
            assert argument.startswith(runs[str(row.job_name)])


def test_a_daemon_that_ends_does_not_pack_to_the_end(desk, tmp_path):
    (model := tmp_path / "model").mkdir()
    ids = accept(desk, 1, tree=model)
    desk.context.stopping.set()
    desk.turn()
    assert desk.states(ids) == ["sending"]
    assert not list((desk.site.directory / "state" / "made").glob("*.tar"))
    desk.context.stopping.clear()
    desk.run()
    check(desk, ids)
