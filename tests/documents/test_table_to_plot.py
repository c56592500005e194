"""A user's own program and a table: a plot of the results takes 15 lines of Python."""

import csv
import math

import pytest

from boinc_gahp.api.project import Project
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.states import BatchState
from tests.cli.conftest import write_settings
from tests.documents.conftest import EXAMPLES, run_example

SCRIPT = EXAMPLES / "table_to_plot.py"
ROWS = 200
#: Somebody's own program; it estimates pi from random points.
PI = """\
import argparse, random
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--points", type=int, required=True)
given = parser.parse_args()
random.seed(given.seed)
inside = sum(random.random() ** 2 + random.random() ** 2 <= 1 for _ in range(given.points))
with open("pi.txt", "w") as file:
    print(4 * inside / given.points, file=file)
"""

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.fixture
def project(tmp_path):
    """A project that has the program as an app."""
    program = tmp_path / "pi.py"
    program.write_text(PI, "utf-8")
    with LocalProject(tmp_path / "project", hosts=4) as project:
        project.add_app("pi", ["{python}", program], outputs="pi.txt")
        yield project


def test_the_script_has_15_lines_at_most():
    lines = SCRIPT.read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip() and not line.startswith('"""')]) <= 15


def test_200_rows_become_a_plot_without_a_refused_submit(project, tmp_path):
    pytest.importorskip("pandas")
    directory = tmp_path / "work"
    directory.mkdir()
    with (directory / "params.csv").open("w", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["seed", "points"])
        rows.writerows([seed, 100 + 50 * seed] for seed in range(ROWS))
    settings = write_settings(
        tmp_path / "boinc_gahp.toml",
        project.url,
        project.authenticator,
        f'[state]\ndir = "{tmp_path / "state"}"\ncache_dir = "{tmp_path / "cache"}"\n',
    )
    assert not run_example(SCRIPT.name, cwd=directory, config=settings, timeout=280)
    assert (directory / "pi.png").read_bytes().startswith(b"\x89PNG")
    with (directory / "results" / "jobs.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == ROWS
    for seed, row in enumerate(table):
        assert (row["seed"], row["points"]) == (str(seed), str(100 + 50 * seed))
        assert row["state"] == "done"
        found = float((directory / "results" / row["folder"] / "pi.txt").read_text("utf-8"))
        assert math.isclose(found, math.pi, abs_tol=1)
    with Project.from_settings(config=settings) as people:
        assert [(each.name, each.state) for each in people.batches()] == [
            ("pi-scan", BatchState.COMPLETE)
        ]
