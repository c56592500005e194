"""The examples that run programs and functions of people do what they say, in real containers."""

import csv
import math
import os
import shutil
import subprocess

import pytest

from tests.containers_engine import IMAGE
from tests.documents.conftest import EXAMPLES, run_example
from tests.documents.volunteers import CONTAINERS
from tests.python_image import python_image

pytestmark = CONTAINERS


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
    assert not run_example("program_scan.py", IMAGE, cwd=settings.parent, config=settings)
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
    image = python_image(engine)
    assert not run_example("function_grid.py", image, cwd=settings.parent, config=settings)
    mpl_image = pytest.importorskip("matplotlib.image")
    picture = mpl_image.imread(settings.parent / "exponents.png")
    red, blue = picture[..., 0], picture[..., 2]
    for most, least in ((red, blue), (blue, red)):
        assert 0.02 < (most - least > 0.2).mean() < 0.6
