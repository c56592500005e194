"""The example of a parameter sweep runs, and its plot shows something."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "examples" / "parameter_sweep.py"
SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What it printed, and its picture."""
    directory = tmp_path_factory.mktemp("sweep")
    picture = directory / "sweep.png"
    result = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, picture],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        cwd=directory,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout, picture


pytestmark = pytest.mark.timeout(420)


def test_all_jobs_are_done_and_every_output_comes_back(run: tuple[str, Path]) -> None:
    printed, picture = run
    assert "<Plan 'logistic-sweep' 200 jobs, 0 bytes to be sent, good>" in printed
    assert "submitting: 200 of 200 jobs" in printed
    assert "complete 200/200 jobs>" in printed
    assert "Counts(queued=0, in_progress=0, done=200, failed=0, unknown=0)" in printed
    assert "200 jobs' outputs came, 0 could not be fetched" in printed
    assert "200 of 200 growth rates are there" in printed
    assert printed.endswith(f"The plot is in {picture}\n")


def test_progress_is_seen_on_the_way(run: tuple[str, Path]) -> None:
    lines = [line for line in run[0].splitlines() if " in_progress " in line]
    assert len(lines) >= 3


def test_the_plot_is_a_picture_of_a_decent_size(run: tuple[str, Path]) -> None:
    data = run[1].read_bytes()
    assert data.startswith(SIGNATURE)
    assert data[12:16] == b"IHDR"
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == (1500, 1125)
    assert len(data) > 50_000


def test_the_plot_is_not_blank_and_shows_order_and_chaos(run: tuple[str, Path]) -> None:
    mpl_image = pytest.importorskip("matplotlib.image")
    picture = mpl_image.imread(run[1])
    height, width = picture.shape[:2]
    # The parts of the upper plot: where there is one value, and where there is chaos.
    inked = picture[..., :3].min(axis=2) < 0.8
    upper = inked[height // 10 : height * 6 // 10]
    order = upper[:, width * 15 // 100 : width * 35 // 100]
    chaos = upper[:, width * 80 // 100 : width * 95 // 100]
    assert 0 < order.mean() < 0.05
    assert chaos.mean() > 0.1
    # One value at most in each column, where there is order.
    assert (order.sum(axis=0) < height // 20).all()
