"""The benchmarks run; what they measure is for people to judge."""

import sys
from pathlib import Path

import pytest

from scripts.benchmarks.cases import CASES, MEASURES
from tests.helpers import ran

pytestmark = [pytest.mark.long, pytest.mark.timeout(660)]

SCRIPT = Path(__file__).parent.parent / "scripts" / "bench"
OURS = str(Path(sys.executable).with_name("boinc_gahp"))


def bench(*arguments):
    # All of them take minutes on a busy machine.
    return ran(SCRIPT, "--repeat", "1", "--size", "0.005", *arguments, timeout=600)


def rows(done):
    """Return the table's columns, without those of parts and of the footer."""
    table = done.stdout.partition("\n\n")[0].splitlines()[1:]
    return [row[44:].split() for row in table if not row.startswith(" ")]


def test_each_case_has_its_floor_which_makes_the_same_requests():
    done = bench(*CASES)  # it says "not measured" of a floor that made others
    assert (done.returncode, done.stderr) == (0, "")
    assert len(rows(done)) == len(CASES)
    for seconds, _, _, floor, _, of_floor, processor, *_ in rows(done):
        assert float(seconds) > 0
        assert float(floor) > 0
        assert float(of_floor) > 0
        assert float(processor) >= 0


def test_each_other_benchmark_runs():
    done = bench(*MEASURES)
    assert (done.returncode, done.stderr) == (0, "")
    assert "floor:" not in done.stdout
