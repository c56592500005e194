"""A full disk: clear errors, nothing lost, and the project goes on when there is space again."""

import resource
import sqlite3
import subprocess
import sys

import pytest
import requests

from tests.helpers import wait_for
from tests.localproject.client import job, value

_RUN = """
import pathlib, sys
from boinc_gahp.localproject.project import LocalProject
with LocalProject(pathlib.Path(sys.argv[1]), hosts=0) as project:
    print(project.url, project.authenticator, flush=True)
    sys.stdin.read()
"""
#: No file can grow beyond this many bytes while the disk is full.
_FULL = 100_000


class _Project:
    """A project in a process of its own, whose disk can be filled."""

    def __init__(self, process, directory):
        assert process.stdout
        self.process = process
        self.directory = directory
        self.url, self.authenticator = process.stdout.readline().split()

    def fill(self, full=True):
        _, hard = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        limit = _FULL if full else hard
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (limit, hard))

    def send(self, rpc, inner, file=None):
        auth = f"<authenticator>{self.authenticator}</authenticator>"
        parts = {"request": (None, f"<{rpc}>{auth}{inner}</{rpc}>".encode())}
        if file is not None:
            parts["file_0"] = ("x.dat", file)
        page = "submit_rpc_handler.php" if file is None else "job_file.php"
        return requests.post(self.url + page, files=parts, timeout=60)

    def rows(self, query):
        connection = sqlite3.connect(self.directory / "project.sqlite")
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()


@pytest.fixture
def project(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", _RUN, str(tmp_path / "p")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield _Project(process, tmp_path / "p")
        finally:
            process.communicate(timeout=60)


@pytest.mark.processes
def test_a_full_disk_costs_nothing_but_the_time_that_it_is_full(project):
    new = "<batch_name>b</batch_name><app_name>uppercase</app_name>"
    batch_id = value(project.send("create_batch", new).text, "batch_id")
    upload = "<phys_name>x.dat</phys_name>"
    jobs = "".join(job(f"j{number}", "x.dat") for number in range(2000))
    submit = f"<batch><batch_id>{batch_id}</batch_id><app_name>uppercase</app_name>{jobs}</batch>"
    assert "<success/>" in project.send("upload_files", upload, b"x").text

    project.fill()
    other = upload.replace("x.dat", "y.dat")
    kept = project.send("upload_files", other, bytes(200_000))
    assert "x.dat upload failed because: Failed to write file to disk." in kept.text
    with pytest.raises(requests.ConnectionError):
        project.send("upload_files", other, bytes(1_000_000))
    refused = project.send("submit_batch", submit)
    assert refused.status_code == 500
    assert refused.text.endswith("<submit_batch>\n")
    assert project.rows("SELECT count(*) FROM workunit") == [(0,)]
    assert project.rows("SELECT name, state FROM batch") == [("b", 0)]
    assert not list((project.directory / "spool").iterdir())
    assert project.process.poll() is None

    project.fill(False)
    assert "<success/>" in project.send("upload_files", other, bytes(1_000_000)).text
    assert value(project.send("submit_batch", submit).text, "batch_id") == batch_id
    wait_for(
        lambda: project.rows("SELECT count(*) FROM result") == [(2000,)], "the back end goes on"
    )
    assert project.rows("SELECT name FROM job_file ORDER BY id") == [("x.dat",), ("y.dat",)]
