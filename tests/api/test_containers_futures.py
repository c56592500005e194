"""Programs in real containers, with a future for each job."""

from pathlib import Path

import pytest

from boinc_gahp.errors import JobFailed
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
def project(in_containers):
    data = Path("data")
    data.mkdir()
    (data / "in.txt").write_text(f"{in_containers.name}\n")
    Path("program.sh").write_text(PROGRAM)
    Path("program.sh").chmod(0o755)
    return in_containers.project


def test_forty_programs_of_which_five_fail(project, in_containers):
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
            assert result.stdout == f"got {number} from {in_containers.name}\n"
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
    assert retry.njobs == 5
    last = project.run(command, image=IMAGE, rows=rows, outputs=["result.txt"])
    assert last.batch == futures.batch
    assert [future.parameters["n"] for future in last.wait(_TIMEOUT).failed] == [*failed]
    assert retry.refresh().is_over
