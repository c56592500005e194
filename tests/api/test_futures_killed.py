"""An interpreter that waits for futures is killed, and the same call is made again."""

import json
import os
import signal
import subprocess
import sys

import pytest

MAPPER = """
import json, sys
from pathlib import Path
from boinc_gahp import InlineFile, Project
from boinc_gahp.api.watching import Poll
given = json.loads(sys.argv[1])
project = Project(given["url"], given["authenticator"])
rows = [{"n": n, "sleep": n / 50} for n in range(40)]
futures = project.map(
    "uppercase", rows, args="--n {n} --sleep {sleep}", inputs={"in": InlineFile("a\\n")},
    outputs=["out"], directory=given["directory"], poll=Poll(0.02, 0.1),
)
for future in futures.as_completed(60):
    print(future.parameters["n"], future.result().outputs["out"].read_text().strip(), flush=True)
print(futures.batch.id)
"""


@pytest.mark.processes
def test_a_killed_interpreter_finds_its_batch_with_all_results(working):
    directory = working.directory / "results"
    given = {
        "url": working.proxy.url,
        "authenticator": working.authenticator,
        "directory": str(directory),
    }
    command = [sys.executable, "-c", MAPPER, json.dumps(given)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert first.stdout is not None
        seen = [first.stdout.readline() for _ in range(10)]
    finally:
        os.kill(first.pid, signal.SIGKILL)
        first.communicate(timeout=60)
    there = {path: path.stat().st_ino for path in directory.glob("*/out")}
    assert len(there) >= 10
    *lines, number = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120
    ).stdout.splitlines()
    assert sorted(lines) == sorted(f"{n} A" for n in range(40))
    assert {line.strip() for line in seen} <= set(lines)
    assert working.proxy.count("submit_batch") == 1
    # A job that was being fetched when the interpreter was killed may be asked for twice.
    assert 40 <= working.proxy.count("result_file") <= 44
    assert [batch.id for batch in working.project.batches()] == [int(number)]
    assert len(list(working.project.batch(int(number)).jobs())) == 40
    assert all(path.stat().st_ino == inode for path, inode in there.items())
