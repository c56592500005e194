"""The benchmarks run; what they measure is for people to judge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parent.parent / "scripts" / "bench"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, "--quick", *arguments], capture_output=True, text=True, timeout=110, check=False
    )


def test_it_measures_two_programs_and_their_ratio() -> None:
    ours = str(Path(sys.executable).with_name("boinc_gahp"))
    done = bench("--only", "version", ours)
    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["boinc_gahp", "aim", "of", "aim", "other", "ratio"]
    assert [row.split("  ")[0] for row in rows if not row.startswith(" ")] == [
        "VERSION round trips"
    ]
    assert all(float(row.split()[-1]) > 0 for row in rows)


def test_a_program_that_is_none_is_reported_beside_ours() -> None:
    done = bench("--only", "spawn", "/bin/false")
    assert done.returncode == 1
    assert "spawn to banner" in done.stdout
    assert "other: not measured: RuntimeError: the program has ended" in done.stdout


def test_jobs_of_htcondor_are_measured_against_their_aims() -> None:
    done = bench("--only", "batch-submit", "/bin/false")
    assert (done.returncode, done.stderr) == (0, "")
    assert "100 BLAH_JOB_SUBMITs, 50 at a time" in done.stdout
    assert "Return Line, worst" in done.stdout
    assert "not measured" not in done.stdout
