"""The examples that run programs and functions of people do what they say, in real containers."""

import csv
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.containers_engine import IMAGE
from tests.documents.volunteers import CONTAINERS
from tests.python_image import python_image

pytestmark = CONTAINERS

EXAMPLES = Path(__file__).parents[2] / "scripts" / "examples"


def run(script, settings, *arguments):
    """Run an example in the directory of the settings."""
    return subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        cwd=settings.parent,
        env={**os.environ, "BOINC_GAHP_CONFIG": str(settings), "MPLBACKEND": "Agg"},
    )


def test_the_scan_of_a_compiled_program_makes_a_table(settings):
    compiler = shutil.which("cc")
    if compiler is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no cc: apt-get install gcc libc6-dev")
        pytest.skip("there is no cc: apt-get install gcc libc6-dev")
    source = EXAMPLES / "pendulum.c"
    to = settings.parent / "pendulum"
    command = [compiler, "-O2", "-static", "-o", str(to), str(source), "-lm"]
    subprocess.run(command, check=True, timeout=60)
    result = run("program_scan.py", settings, IMAGE)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    with (settings.parent / "periods.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["degrees", "seconds"]
    assert [int(degrees) for degrees, _ in rows] == list(range(10, 180, 10))
    periods = [float(seconds) for _, seconds in rows]
    assert periods == sorted(periods)
    # A small swing takes 2 pi sqrt(l / g), and 0.2 % more at 10 degrees.
    assert math.isclose(periods[0], 2 * math.pi * math.sqrt(1 / 9.80665) * 1.0019, rel_tol=1e-4)


def test_the_function_on_a_grid_makes_a_plot_with_order_and_chaos(settings, engine):
    pytest.importorskip("cloudpickle")
    pytest.importorskip("matplotlib")
    result = run("function_grid.py", settings, python_image(engine))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    mpl_image = pytest.importorskip("matplotlib.image")
    picture = mpl_image.imread(settings.parent / "exponents.png")
    red, blue = picture[..., 0], picture[..., 2]
    for most, least in ((red, blue), (blue, red)):
        assert 0.02 < (most - least > 0.2).mean() < 0.6
