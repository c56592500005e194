"""A parameter sweep on volunteers' computers, from a table of parameters to the plot.

A population ``x``, as a part of what there is room for, grows logistically: a year later it is
``rate * x * (1 - x)``. For small rates it settles down, for larger ones it swings between 2, 4,
8, ... values, and in the end it is chaotic. 200 jobs, one for each rate, follow the population for
some thousand years. This script submits them, waits for them, fetches their outputs, and draws a
plot::

    python scripts/examples/parameter_sweep.py sweep.png

It takes less than a minute: instead of using a real BOINC project it starts one on this machine,
with four volunteers. To use your own project, which must have the app, replace the cell "The
project" with ``project = Project.from_settings()``.

The lines ``# %%`` divide the script into cells: editors such as VS Code, PyCharm and Spyder run
them one by one, like a notebook. It needs boinc_gahp's extra ``local-project``, and matplotlib.
"""

# %% Imports
from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from boinc_gahp import Project, jobs_from

try:
    import matplotlib as mpl

    mpl.use("Agg")  # draws into files, also on machines without a screen

    import matplotlib.pyplot as plt
    import numpy as np

    from boinc_gahp.localproject.project import LocalProject
except ImportError:
    sys.exit("This needs more: pip install 'boinc_gahp[local-project]' matplotlib")

PICTURE = Path(sys.argv[1] if len(sys.argv) > 1 else "parameter_sweep.png")
HERE = Path(__file__).parent
GENERATIONS = 3000

# %% The project
# A local project, which ends and is removed with this script. Its app is logistic.py, a program
# that takes its parameters as arguments and writes orbit.txt; nothing in it is special to BOINC.
running = ExitStack()
atexit.register(running.close)
directory = Path(tempfile.mkdtemp(prefix="parameter-sweep-"))
running.callback(shutil.rmtree, directory)
local = running.enter_context(LocalProject(directory / "project"))
local.add_app("logistic", ["{python}", HERE / "logistic.py"], outputs="orbit.txt")
project = running.enter_context(Project(local.url, local.authenticator))

# %% The jobs
# One for each row of a table: here a list, but a CSV file or a DataFrame does as well. A column is
# a parameter; what is in braces is filled in for each job.
rows = [{"rate": rate} for rate in np.linspace(2.5, 4.0, 200, endpoint=False)]
jobs = jobs_from(rows, args=f"{{rate}} {GENERATIONS} 200")

# %% Submit and wait
# A batch with a name is submitted only once, however often you run this cell. So you can run it
# again if it was interrupted or the network failed. The name can be used only once in the whole
# project: on a real project, put your own name and a date into it.
batch = project.submit("logistic", jobs, name="logistic-sweep", progress=True)
batch.wait(progress=True)
print(batch.counts())
for reason in batch.reasons():
    print(reason)

# %% Fetch
# Each job gets a folder, and jobs.csv has a row for each. Outputs that are there already are not
# fetched again.
fetched = batch.fetch(directory / "results", threads=8, progress=True)
print(f"{fetched.fetched} jobs' outputs came, {len(fetched.errors)} could not be fetched")
done = [row for row in batch.to_records() if row["state"] == "done"]
orbits = {row["rate"]: np.loadtxt(Path(row["folder"]) / "orbit.txt") for row in done}
print(f"{len(orbits)} of {len(jobs)} growth rates are there")
batch.retire()  # the project may now delete the batch's files

# %% The plot
# Above: the values of the population. Below: whether it is chaotic. The Lyapunov exponent says how
# fast two nearly equal populations become different; if it is below zero, they become equal.
BLUE, RED, GREY = "#2a5f9e", "#c0392b", "#555555"

rates = np.array(list(orbits))
exponents = [
    np.mean(np.log(np.maximum(np.abs(rate * (1 - 2 * orbit)), 1e-4)))
    for rate, orbit in orbits.items()
]

plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
figure, (above, below) = plt.subplots(
    2, 1, figsize=(9, 5), sharex=True, height_ratios=[3, 1], layout="constrained"
)
figure.suptitle("A population that grows logistically", fontsize=14, weight="bold")

for rate, orbit in orbits.items():
    above.plot(np.full(len(orbit), rate), orbit, ".", color=BLUE, markersize=1.5, alpha=0.45)
above.set_ylabel("population, as a part of\nwhat there is room for")
above.set_ylim(0, 1.04)
for where, what in ((2.75, "one value"), (3.225, "two"), (3.49, "four"), (3.75, "chaos")):
    above.annotate(what, (where, 0.06), ha="center", color=GREY, style="italic")

below.axhline(0, color=GREY, linewidth=0.8)
below.plot(rates, exponents, color=BLUE, linewidth=1.2)
chaotic = np.array(exponents) > 0
below.fill_between(rates, 0, exponents, chaotic, interpolate=True, color=RED, alpha=0.35)
below.set_ylim(-2, 1)
below.set_ylabel("Lyapunov\nexponent")
below.set_xlabel(f"growth rate; one job each, {len(orbits)} of {len(jobs)} done")
below.set_xlim(2.5, 4.0)

figure.savefig(PICTURE, dpi=100)
print(f"The plot is in {PICTURE}")
