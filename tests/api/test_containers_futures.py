"""Programs in real containers, with a future for each job."""

import json
import os
import signal
import subprocess
import sys

import pytest

from boinc_gahp.errors import JobFailed
from tests.api.conftest import for_containers
from tests.containers_engine import IMAGE

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


@pytest.fixture
def project(volunteers, authenticator, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.sh").write_text(PROGRAM)
    (tmp_path / "program.sh").chmod(0o755)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.txt").write_text(f"{tmp_path.name}\n")
    with for_containers(volunteers.url, authenticator, tmp_path, retry=20) as opened:
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


def test_a_killed_interpreter_finds_its_programs_again(project, volunteers, authenticator):
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
