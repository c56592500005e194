"""Whatever kills the process in a plug-in: the next pass reaches the same end."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.localproject.bench import Bench

pytestmark = pytest.mark.processes

#: Runs one pass, in a process of its own.
ONE_PASS = """
import sys
from pathlib import Path
from boinc_gahp.localproject import Php
from boinc_gahp.localproject.core import Core
from boinc_gahp.localproject.backend.assimilator import assimilate_pass
from boinc_gahp.localproject.backend.validator import validate_pass

core = Core(Path(sys.argv[1]), Php())
{program}(core, {now})
"""

#: Ends the process at once, the second time that it is called.
PLUGIN = """
import os
from pathlib import Path

directory = Path(__file__).parents[1]
calls = directory / "calls"

def _call():
    with calls.open("a") as file:
        file.write("x")
    if calls.stat().st_size == 2:
        os._exit(9)

def compare(first, second):
    _call()
    return first.files[0].md5 == second.files[0].md5

def handle(job, canonical, instances):
    (directory / f"handled_{job.name}").write_bytes(canonical.files[0].path.read_bytes())
    _call()
"""

_TIMES = {"mod_time", "transition_time", "random", "xml_doc_in", "xml_doc_out"}


def rows(bench: Bench) -> list[dict[str, Any]]:
    """Everything that the back end has written, but for names that are random."""
    connection = bench.core.db.connection()
    return [
        {key: row[key] for key in row.keys() if key not in _TIMES}  # noqa: SIM118
        for table in ("workunit", "result", "host", "user")
        for row in connection.execute(f"SELECT * FROM {table} ORDER BY id")
    ]


def prepare(bench: Bench, names: list[str]) -> None:
    bench.module("mine", PLUGIN)
    bench.set("app", "id = 1", validator="mine:compare", assimilator="mine:handle")
    for name in names:
        bench.workunit(name, min_quorum=2, target_nresults=2)
        bench.transition()
        bench.compute(b"same", b"same" if name != "differ" else b"other")
    bench.transition()


@pytest.mark.parametrize("program", ["validate_pass", "assimilate_pass"])
def test_a_plug_in_that_ends_the_process_loses_nothing(bench: Bench, program: str) -> None:
    prepare(bench, ["a", "b", "differ", "c"])
    if program == "assimilate_pass":
        (bench.directory / "calls").write_text("xxx")
        bench.validate()
        (bench.directory / "calls").unlink()
    script = ONE_PASS.format(program=program, now=bench.now)
    died = subprocess.run([sys.executable, "-c", script, bench.directory], check=False)
    assert died.returncode == 9
    bench.settle()
    handled = {path.name: path.read_text() for path in bench.directory.glob("handled_*")}
    assert handled == {"handled_a": "same", "handled_b": "same", "handled_c": "same"}
    crashed = rows(bench)
    with bench.core.db.write() as connection:
        for table in ("result", "workunit"):
            connection.execute(f"DELETE FROM {table}")
            connection.execute("DELETE FROM sqlite_sequence")
        connection.execute("UPDATE host SET total_credit = 0")
        connection.execute("UPDATE user SET total_credit = 0")
    prepare(bench, ["a", "b", "differ", "c"])
    bench.settle()
    assert rows(bench) == crashed
