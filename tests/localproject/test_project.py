"""Starting, stopping and starting again; what others see of a project's directory."""

import socket
import threading

import psutil
import pytest

from boinc_gahp.localproject.commands.running import init
from boinc_gahp.localproject.directory import lock
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.localproject.project import LocalProject
from tests.helpers import wait_for
from tests.localproject.client import Client, job


def init_project(directory):
    """Make a project; return the path of the submitter's settings."""
    init([str(directory)], None)
    return directory / "boinc_gahp.toml"


def _ours():
    threads = {thread.ident for thread in threading.enumerate()}
    return threads, psutil.Process().children(recursive=True)


def test_nothing_is_left_behind(tmp_path):
    before = _ours()
    files = psutil.Process().num_fds()
    with LocalProject(tmp_path / "p", hosts=2) as project, Client(project) as client:
        port = project.port
        batch_id, name = client.begun("b")
        client.submit(batch_id, [job(f"j{n}", name, command_line="--sleep 60") for n in range(3)])
        wait_for(lambda: len(_ours()[1]) == 2, "two jobs running")
        assert client.statuses("b") == {"j0": "IN_PROGRESS", "j1": "IN_PROGRESS", "j2": "UNSENT"}
    assert _ours() == before
    assert psutil.Process().num_fds() <= files, "those of earlier tests may be closed meanwhile"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_another_port_is_taken_when_the_last_one_is_not_free(tmp_path):
    with LocalProject(tmp_path / "p", hosts=0) as project:
        port = project.port
    with LocalProject(tmp_path / "p", hosts=0) as project:
        assert project.port == port
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with LocalProject(tmp_path / "p", hosts=0) as project:
            assert project.port != port
            assert str(project.port) in (tmp_path / "p" / "boinc_gahp.toml").read_text()
        with pytest.raises(OSError, match="Address already in use"):
            LocalProject(tmp_path / "p", hosts=0, port=port).__enter__()


def test_making_a_project_twice_changes_nothing(tmp_path):
    path = init_project(tmp_path / "p")
    text = path.read_text()
    template = tmp_path / "p" / "templates" / "uppercase_in"
    template.write_text("edited")
    assert init_project(tmp_path / "p").read_text() == text
    assert template.read_text() == "edited"


def test_a_directory_with_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    for make in (init_project, LocalProject):
        with pytest.raises(LocalProjectTrouble, match="neither empty nor a project"):
            make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(LocalProjectTrouble, match="is a file"):
        init_project(tmp_path / "thesis.tex")


def test_a_directory_is_used_by_one_process_at_a_time(tmp_path):
    taken = pytest.raises(LocalProjectTrouble, match="in use by another process")
    with LocalProject(tmp_path / "p", hosts=0), taken:
        init_project(tmp_path / "p")
    # What a process that was killed was starting may hold its lock a moment longer.
    held = lock(tmp_path / "p")
    threading.Timer(0.2, held.close).start()
    lock(tmp_path / "p").close()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "project.sqlite").write_text("no database" * 100)
    with pytest.raises(LocalProjectTrouble, match="cannot be opened"):
        LocalProject(tmp_path, hosts=0)


def test_a_thread_that_dies_is_told(tmp_path):
    before = _ours()
    project = LocalProject(tmp_path / "p", hosts=0).__enter__()

    def broken():
        raise RuntimeError("out of order")

    project._run(broken, "localproject-broken")
    wait_for(lambda: project._failure, "the thread has died")
    with pytest.raises(LocalProjectTrouble, match="out of order"):
        project.__exit__(None, None, None)
    assert _ours() == before


def test_half_received_files_of_a_killed_process_are_removed(tmp_path):
    project = LocalProject(tmp_path / "p", hosts=0)
    left = tmp_path / "p" / "spool" / "half"
    left.write_bytes(b"half")
    project.close()
    with LocalProject(tmp_path / "p", hosts=0):
        assert not left.exists()
