"""Which hosts get the jobs of a container app; what people are told where there is no engine."""

import pytest

from boinc_gahp.config import layers
from boinc_gahp.localproject.commands.participants import set_host
from boinc_gahp.localproject.commands.running import status
from boinc_gahp.localproject.directory import make
from boinc_gahp.localproject.hosts.engine import Containers
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import ServerState
from tests.helpers import wait_for
from tests.localproject.in_containers import APP, ContainerJobs, add_container_app, files
from tests.localproject.visitor import Visitor


def offer(bench, host, engine, version=80300):
    bench.set("host", f"id = {host}", docker_version=engine, core_client_version=version)


@pytest.fixture
def waiting(bench):
    """A job of a container app."""
    add_container_app(bench.directory)
    bench.made(appid=bench.rows("SELECT id FROM app WHERE name = ?", APP)[0]["id"])
    return bench


def test_a_host_with_an_engine_gets_the_job(waiting):
    offer(waiting, 2, "podman 4.3.1")
    assert waiting.scheduler.request_work(1, waiting.now) is None
    task = waiting.scheduler.request_work(2, waiting.now)
    assert (task.in_container, task.command) == (True, ("docker_wrapper",))


@pytest.mark.parametrize(
    ("engine", "version"),
    [(None, 80300), ("", 80300), ("podman 4.3.1", 72005), ("docker 20", 80199)],
)
def test_without_an_engine_or_with_an_older_client_a_host_gets_none(waiting, engine, version):
    offer(waiting, 1, engine, version)
    assert waiting.scheduler.request_work(1, waiting.now) is None


def test_a_host_can_be_told_not_to_offer_its_engine(waiting, capsys):
    offer(waiting, 1, "podman 4.3.1")
    assert set_host([str(waiting.directory), "h1", "engine=0", "speed=2e9"], None) == 0
    assert capsys.readouterr().out.endswith("Host h1: engine=0 speed=2e+09\n")
    assert waiting.scheduler.request_work(1, waiting.now) is None
    set_host([str(waiting.directory), "h1", "engine=1"], None)
    assert waiting.scheduler.request_work(1, waiting.now) is not None


def test_a_job_without_a_host_for_it_waits_and_others_go_on(waiting):
    for _ in range(50):
        assert waiting.scheduler.request_work(1, waiting.now) is None
    assert waiting.results("server_state") == [ServerState.UNSENT]
    waiting.made("other")
    task = waiting.scheduler.request_work(1, waiting.now)
    assert (task.result_name, task.in_container) == ("other_0", False)


@pytest.fixture
def no_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


NOTICE = "neither podman nor docker answers on this machine. Install one ("


def test_where_there_is_no_engine_jobs_wait_and_everybody_is_told_so(no_engine, tmp_path, capsys):
    directory = tmp_path / "p"
    make(directory)
    add_container_app(directory)
    assert NOTICE in capsys.readouterr().out
    with LocalProject(directory, hosts=1) as project:
        assert NOTICE in project.notice()
        jobs = ContainerJobs(project)
        name = jobs.submit(files("exit 0"))
        wait_for(lambda: jobs.result(name), "a result")
        with Visitor(project.core) as visitor:
            assert NOTICE in visitor.text("")
        status([str(directory)], None)
        assert NOTICE in capsys.readouterr().out
        row = jobs.result(name)
        assert row["server_state"] == ServerState.UNSENT


@pytest.mark.processes
def test_without_a_container_app_nobody_looks_for_an_engine(tmp_path, monkeypatch):
    marker = tmp_path / "called"
    program = tmp_path / "bin" / "podman"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n: >{marker}\necho 4.3.1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
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
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("podman", "exit 125"), ("docker", "echo 20.10.24")):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
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
