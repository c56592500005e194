"""Programs in real containers, with a future for each job."""

import json
import os
import signal
import subprocess
import sys

import pytest

from boinc_gahp import Project
from boinc_gahp.config.settings import ProjectSettings, Settings, State, Timeouts
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import JobFailed
from boinc_gahp.localproject.php import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.containers_engine import IMAGE
from tests.localproject.in_containers import APP

# A machine with other work starts a container in seconds.
pytestmark = [pytest.mark.long, pytest.mark.containers, pytest.mark.timeout(1200)]

_TIMEOUT = 500

#: A program that fails for some numbers.
PROGRAM = """\
#!/bin/sh
echo "got $1 from $(cat "$2")"
echo "$1 squared is $(($1 * $1))" > result.txt
if [ $(($1 % 8)) = 7 ]; then echo "cannot do $1" >&2; exit 3; fi
"""


def _user(directory):
    """Return the name of a test's own account."""
    return directory.name[:40].replace("_", "").lower()


@pytest.fixture(scope="module")
def volunteers(engine, tmp_path_factory):
    """A project as a real server, with volunteers that have an engine and an image."""
    assert engine.images()
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=4, php=STOCK) as project:
        project.add_container_app(APP)
        yield project


@pytest.fixture
def project(volunteers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.sh").write_text(PROGRAM)
    (tmp_path / "program.sh").chmod(0o755)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.txt").write_text(f"{tmp_path.name}\n")
    authenticator = volunteers.add_user(_user(tmp_path))
    settings = Settings(
        project=ProjectSettings(ProjectUrl(volunteers.url), container_app=APP),
        timeouts=Timeouts(connect=5, read=20, retry=20),
        state=State(dir=tmp_path / "state", cache_dir=tmp_path / "cache"),
    )
    with Project(volunteers.url, authenticator, settings=settings) as opened:
        yield opened


def test_forty_programs_of_which_five_fail(project, tmp_path):
    rows = [{"n": n} for n in range(40)]
    command = ["./program.sh", "{n}", "data/in.txt"]
    futures = project.run(command, image=IMAGE, rows=rows, outputs=["result.txt"])
    assert futures.batch.name.startswith("program.sh-")
    futures.wait(_TIMEOUT)
    failed = {future.parameters["n"]: future.exception() for future in futures.failed}
    assert [*failed] == [7, 15, 23, 31, 39]
    for number, error in failed.items():
        assert isinstance(error, JobFailed)
        assert error.exit_status == 3
        assert error.stderr == f"cannot do {number}\n"
        assert f'the last line of its stderr: "cannot do {number}"' in str(error)
    for future in futures:
        number = future.parameters["n"]
        if number not in failed:
            result = future.result()
            assert result.stdout == f"got {number} from {tmp_path.name}\n"
            assert isinstance(number, int)
            wanted = f"{number} squared is {number**2}\n"
            assert result.outputs["result.txt"].read_text() == wanted
            assert (result.exit_status, result.stderr) == (0, "")
    again = project.run(command, image=IMAGE, rows=rows, outputs=["result.txt"])
    assert again.batch == futures.batch
    assert again.batch.existed
    assert len(again.wait(_TIMEOUT).failed) == 5
    # Sent again, they are waited for; they fail again.
    retry = futures.batch.retry()
    assert retry is not None
    assert retry.njobs == 5
    last = project.run(command, image=IMAGE, rows=rows, outputs=["result.txt"])
    assert last.batch == futures.batch
    assert [future.parameters["n"] for future in last.wait(_TIMEOUT).failed] == [*failed]
    assert retry.refresh().is_over


RUN = """
import json, sys
from pathlib import Path
from boinc_gahp import Project
from boinc_gahp.config.settings import ProjectSettings, Settings, State
from boinc_gahp.config.urls import ProjectUrl
given = json.loads(sys.argv[1])
settings = Settings(
    project=ProjectSettings(ProjectUrl(given["url"]), container_app="docker"),
    state=State(dir=Path("state"), cache_dir=Path("cache")),
)
project = Project(given["url"], given["authenticator"], settings=settings)
futures = project.run(
    "sh program.sh {n} data/in.txt --tree=data", image=given["image"],
    rows=[{"n": n} for n in range(40, 46)], directory="results",
)
print(futures.batch.id, flush=True)
for future in futures.as_completed(500):
    print(future.parameters["n"], future.result().outputs["result.txt"].read_text(), flush=True)
"""


def test_a_killed_interpreter_finds_its_programs_again(project, volunteers, tmp_path):
    authenticator = volunteers.authenticator_of(_user(tmp_path))
    given = {"url": volunteers.url, "authenticator": authenticator, "image": IMAGE}
    command = [sys.executable, "-c", RUN, json.dumps(given)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None
        number, seen = first.stdout.readline(), first.stdout.readline()
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.communicate(timeout=60)
    assert seen
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=500)
    batch_id, *lines = done.stdout.replace("\n\n", "\n").splitlines()
    assert sorted(lines) == [f"{n} {n} squared is {n * n}" for n in range(40, 46)]
    assert int(batch_id) == int(number)
    assert [batch.id for batch in project.batches()] == [int(number)]
    assert len(list(project.batch(int(number)).jobs())) == 6
