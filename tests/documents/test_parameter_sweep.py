"""The example of a parameter sweep runs, and its plot shows something.

``UPDATE_PICTURE=1 .venv/bin/pytest tests/documents/test_parameter_sweep.py`` draws the one in
README.rst again.
"""

import os

import pytest

from tests.documents.conftest import ROOT, run_example

IN_README = ROOT / "docs" / "images" / "parameter-sweep.png"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What it printed, and its picture."""
    directory = tmp_path_factory.mktemp("sweep")
    picture = directory / "sweep.png"
    return run_example("parameter_sweep.py", picture, cwd=directory, timeout=400), picture


pytestmark = [pytest.mark.processes, pytest.mark.timeout(420)]


def test_all_jobs_are_done_and_every_output_comes_back(run):
    printed, picture = run
    assert printed.splitlines() == [
        "Counts(queued=0, in_progress=0, done=200, failed=0, unknown=0)",
        "200 jobs' outputs came, 0 could not be fetched",
        "200 of 200 growth rates are there",
        f"The plot is in {picture}",
    ]


def test_the_plot_in_the_readme_is_what_the_script_draws(run):
    if "UPDATE_PICTURE" in os.environ:
        IN_README.write_bytes(run[1].read_bytes())
    assert 20_000 < IN_README.stat().st_size < 120_000
    mpl_image = pytest.importorskip("matplotlib.image")
    one, two = (mpl_image.imread(path)[..., :3] for path in (IN_README, run[1]))
    assert one.shape == two.shape == (500, 900, 3)
    # Fonts and lines may be a little different.
    assert abs(one - two).mean() < 0.02
