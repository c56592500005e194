"""Container jobs and the end of what runs them: stops, kills, aborts, and going on afterwards."""

import signal
import subprocess
import sys

import pytest

from boinc_gahp.localproject.commands import opened
from boinc_gahp.localproject.directory import make
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import Outcome
from tests.containers_engine import IMAGE
from tests.helpers import wait_for
from tests.localproject.client import Elsewhere
from tests.localproject.in_containers import ContainerJobs, add_container_app, files, output

pytestmark = [pytest.mark.containers, pytest.mark.long]

_MAIN = "import sys; from boinc_gahp.cli.main import main; sys.exit(main())"

#: Counts how often it has begun in this slot; the second time it ends.
CHECKPOINT = """\
cat in.txt >>begun
[ "$(wc -l <begun)" -lt 2 ] && sleep 1000
cp begun out
"""
INPUTS = {"in__txt": "begun\n"}


@pytest.fixture
def directory(engine, tmp_path):
    made = tmp_path / "project"
    make(made)
    add_container_app(made)
    return made


def nothing_left(engine):
    return (engine.containers(), engine.images()) == (set(), {f"{IMAGE}:latest"})


def begun(directory):
    """Wait until the job has written something into its slot."""
    slots = directory / "slots"
    wait_for(lambda: [*slots.glob("*/begun")], "the job's first file")


def test_a_job_goes_on_in_its_slot_after_a_stop_with_the_files_it_had(engine, directory):
    with LocalProject(directory, hosts=1) as project:
        name = ContainerJobs(project).submit(files(CHECKPOINT, **INPUTS), [output("out")])
        begun(directory)
    assert nothing_left(engine)
    with LocalProject(directory, hosts=1) as project:
        done = ContainerJobs(project).done(name, 1)
        assert (done.ended, done.outputs) == ((Outcome.SUCCESS, 0), (b"begun\nbegun\n",))
        assert done.stderr.count("docker_wrapper (imitated) starting") == 2
        other = ContainerJobs(project)
        other._made = 1
        assert other.run(files("ls >out"), [output("out")]).outputs == (
            b"Dockerfile\njob.toml\nout\nrun.sh\nstderr.txt\n",
        )
    assert nothing_left(engine)
    assert list((directory / "slots").iterdir()) == []


@pytest.fixture
def somebody_elses(engine):
    """A container that no project of ours has made."""
    engine("create", "--name", "boinc__others__1", IMAGE, "true")
    yield "boinc__others__1"
    engine("rm", "boinc__others__1")


def test_a_killed_project_leaves_a_container_that_its_next_start_removes(
    engine, directory, somebody_elses
):
    with subprocess.Popen(
        [sys.executable, "-c", _MAIN, "local-project", "run", directory, "--hosts", "1"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert "answers at" in process.stdout.readline()
            with opened(directory) as core:
                jobs = ContainerJobs(Elsewhere(core))
                name = jobs.submit(files(CHECKPOINT, **INPUTS), [output("out")])
            begun(directory)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    (left,) = engine.containers() - {somebody_elses}
    assert left.endswith(f"__{name}_0")
    with LocalProject(directory, hosts=1) as project:
        done = ContainerJobs(project).done(name, 1)
        assert done.outputs == (b"begun\nbegun\n",)
    assert engine.containers() == {somebody_elses}
    assert engine.images() == {f"{IMAGE}:latest"}


def test_an_aborted_job_is_killed_and_removed_with_exit_status_202(engine, directory):
    with LocalProject(directory, hosts=1) as project:
        jobs = ContainerJobs(project)
        name = jobs.submit(files(CHECKPOINT, **INPUTS), [output("out")])
        begun(directory)
        jobs.client.rpc("abort_jobs", f"<job_name>{name}</job_name>")
        row = jobs.over(name)
        assert (row["outcome"], row["exit_status"]) == (Outcome.CLIENT_ERROR, 202)
        assert "aborted by project" in row["stderr_out"]
        assert engine.containers() == set()


def test_two_projects_on_one_machine_do_not_touch_each_others_containers(
    engine, directory, tmp_path
):
    other = tmp_path / "other"
    make(other)
    add_container_app(other)
    with LocalProject(other, hosts=1) as second:
        name = ContainerJobs(second).submit(files(CHECKPOINT, **INPUTS), [output("out")])
        begun(other)
        with LocalProject(directory, hosts=1) as project:
            assert ContainerJobs(project).run(files("exit 0")).ended == (Outcome.SUCCESS, 0)
        (left,) = engine.containers()
        assert left.endswith(f"__{name}_0")
    assert nothing_left(engine)


def test_an_image_with_a_name_of_another_kind_stays(engine, directory):
    text = 'image_name = "mine:1"\n'
    with LocalProject(directory, hosts=1) as project:
        assert ContainerJobs(project).run(files("exit 0", job__toml=text)).ended == (
            Outcome.SUCCESS,
            0,
        )
    assert "localhost/mine:1" in engine.images()
    engine("image", "rm", "mine:1")
    assert nothing_left(engine)
