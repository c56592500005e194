"""Which hosts get the jobs of a container app; what people are told where there is no engine."""

import pytest

from boinc_gahp.config import layers
from boinc_gahp.localproject import contents
from boinc_gahp.localproject.commands.participants import set_host
from boinc_gahp.localproject.commands.running import status
from boinc_gahp.localproject.directory import make
from boinc_gahp.localproject.hosts.engine import Containers
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import ServerState
from tests.helpers import wait_for
from tests.localproject.in_containers import APP, ContainerJobs, add_container_app, files


@pytest.fixture
def waiting(bench):
    """A job of a container app."""
    add_container_app(bench.directory)
    bench.made(appid=bench.rows("SELECT id FROM app WHERE name = ?", APP)[0]["id"])
    return bench


@pytest.mark.parametrize(
    ("engine", "version", "gets"),
    [
        ("podman 4.3.1", 80300, True),
        *((None, 80300, False), ("", 80300, False)),
        *(("podman 4.3.1", 72005, False), ("docker 20", 80199, False)),
    ],
)
def test_a_host_gets_the_job_if_it_has_an_engine_and_a_client_that_knows_it(
    waiting, engine, version, gets
):
    waiting.set("host", "id = 1", docker_version=engine, core_client_version=version)
    # A job without a host for it waits, and others go on.
    for _ in range(50):
        assert waiting.send(2) is None
    assert waiting.results("server_state") == [ServerState.UNSENT]
    waiting.made("other")
    told = ("w_0", True, ("docker_wrapper",)) if gets else ("other_0", False)
    task = waiting.send(1)
    assert (task.result_name, task.in_container, task.command)[: len(told)] == told


def test_a_host_can_be_told_not_to_offer_its_engine(waiting, capsys):
    waiting.set("host", "id = 1", docker_version="podman 4.3.1", core_client_version=80300)
    assert set_host([str(waiting.directory), "h1", "engine=0", "speed=2e9"], None) == 0
    assert capsys.readouterr().out.endswith("Host h1: engine=0 speed=2e+09\n")
    assert waiting.send(1) is None
    set_host([str(waiting.directory), "h1", "engine=1"], None)
    assert waiting.send(1) is not None


NOTICE = "neither podman nor docker answers on this machine. Install one ("


def test_where_there_is_no_engine_jobs_wait_and_everybody_is_told_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    directory = tmp_path / "p"
    make(directory)
    add_container_app(directory)
    assert NOTICE in capsys.readouterr().out
    with LocalProject(directory, hosts=1) as project:
        assert NOTICE in project.notice()
        jobs = ContainerJobs(project)
        name = jobs.submit(files("exit 0"))
        wait_for(lambda: jobs.result(name), "a result")
        assert NOTICE in contents.notices(project.core)[0]
        status([str(directory)], None)
        assert NOTICE in capsys.readouterr().out
        assert jobs.result(name)["server_state"] == ServerState.UNSENT


def programs(directory, monkeypatch, **scripts):
    """Put programs before those of the machine."""
    for name, text in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")


@pytest.mark.processes
def test_without_a_container_app_nobody_looks_for_an_engine(tmp_path, monkeypatch):
    marker = tmp_path / "called"
    programs(tmp_path, monkeypatch, podman=f": >{marker}\necho 4.3.1")
    with LocalProject(tmp_path / "p", hosts=2) as project:
        assert project.notice() == ""
        assert not marker.exists()
        project.add_container_app(APP)
        project.core.wake.ring()
        wait_for(marker.exists, "a look for an engine by a host")
        count = "SELECT count(*) FROM host WHERE docker_version = 'podman 4.3.1'"
        connection = project.core.db.connection()
        wait_for(lambda: connection.execute(count).fetchone()[0] == 2, "the engine of both hosts")
        assert project.notice() == ""


@pytest.mark.processes
def test_what_does_not_answer_is_no_engine_and_docker_comes_second(bench, tmp_path, monkeypatch):
    programs(tmp_path, monkeypatch, podman="exit 125", docker="echo 20.10.24")
    assert str(Containers(bench.core.db, bench.directory).engine()) == "docker 20.10.24"


def container_app(path):
    project = layers.load(str(path), {}).project
    return project.container_app


def test_the_settings_of_users_name_the_app_that_takes_jobs_in_containers(tmp_path):
    directory = tmp_path / "p"
    with LocalProject(directory, hosts=0) as project:
        path = directory / "boinc_gahp.toml"
        assert container_app(path) is None
        project.add_container_app(APP)
        project.add_container_app("second")
        assert container_app(path) == APP
    with LocalProject(directory, hosts=0) as project:
        assert project.url in path.read_text()
        assert container_app(path) == APP
    path.write_text(f"# mine\n{path.read_text()}")
    with LocalProject(directory, hosts=0):
        assert path.read_text().startswith("# mine\n")
