"""A parameter sweep on volunteers' computers, from the first line to the plot.

A population ``x``, as a part of what there is room for, grows logistically: a year later it is
``rate * x * (1 - x)``. For small rates it settles down, for larger ones it swings between 2, 4,
8, ... values, and in the end it is chaotic. 200 jobs, one for each rate, follow the population for
some thousand years. This script submits them, waits for them, fetches their outputs, and draws a
plot::

    python scripts/examples/parameter_sweep.py sweep.png

It takes about a minute: instead of using a real BOINC project it starts one on this machine, with
four volunteers. To use your own project, which must have the app, replace the cell "The project"
with::

    project = Project.from_settings()       # or Project(url, authenticator)

The lines ``# %%`` divide the script into cells: editors such as VS Code, PyCharm and Spyder run
them one by one, like a notebook. Each cell needs only those above it. matplotlib must be installed.
"""

# %% Imports and directories
from __future__ import annotations

import atexit
import json
import shlex
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # draws into files, also on machines without a screen

import matplotlib.pyplot as plt
import numpy as np

from boinc_gahp import Batch, InlineFile, Job, Parameters, Progress, Project
from boinc_gahp.localproject import LocalProject
from boinc_gahp.localproject.new_app import NewApp, add

PICTURE = Path(sys.argv[1] if len(sys.argv) > 1 else "parameter_sweep.png")
HERE = Path(__file__).parent

# When the script ends, this closes what is opened below, and removes the directory.
running = ExitStack()
atexit.register(running.close)
directory = Path(tempfile.mkdtemp(prefix="parameter-sweep-"))
running.callback(shutil.rmtree, directory)

# %% The project
# A local project, which is removed when this script ends. Its app is logistic.py, a program that
# reads parameters.json and writes orbit.txt; nothing in it is special to BOINC.
local = running.enter_context(LocalProject(directory / "project", hosts=4))
add(
    local.core,
    NewApp(
        "logistic",
        command="{python} " + shlex.quote(str(HERE / "logistic.py")),
        inputs=("parameters.json",),
        outputs=(("orbit.txt", False),),
    ),
)

project = running.enter_context(Project(local.url, local.authenticator))
print(project)
print(project.app("logistic"))

# %% The jobs
# One for each growth rate. Small inputs can be sent with the job, as here. Give a path instead of
# an InlineFile for a file on this machine; it is sent once, however many jobs use it.
RATES = np.linspace(2.5, 4.0, 200, endpoint=False)
GENERATIONS = 3000
SHOWN = 200  # number of populations that each job writes, the last ones

jobs = {}
for number, rate in enumerate(RATES):
    parameters = {"rate": float(rate), "generations": GENERATIONS, "shown": SHOWN}
    name = f"logistic-sweep-{number:03d}"
    jobs[name] = Job(name=name, inputs={"parameters.json": InlineFile(json.dumps(parameters))})

# %% Check
# This sends nothing. It finds mistakes in the jobs, and says how large the batch would be.
needs = Parameters(fpops_est=1000.0 * GENERATIONS, delay_bound=86400)
plan = project.plan("logistic", jobs.values(), name="logistic-sweep", parameters=needs)
print(plan)
for name, problem in plan.problems.items():
    print(f"{name}: {problem}")

# %% Submit
# A batch with a name is submitted only once, however often you run this cell. So you can run it
# again if it was interrupted or the network failed. Names of batches and jobs can be used only once
# in the whole project: on a real project, put your own name and a date into them.


def show(progress: Progress) -> None:
    """Print how far the submit is."""
    if progress.total:
        print(f"  {progress.step}: {progress.done} of {progress.total} {progress.unit}")


batch = project.submit(
    "logistic", jobs.values(), name="logistic-sweep", parameters=needs, progress=show
)
print(batch)

# %% Wait
# You can interrupt this, too. Later, project.batch("logistic-sweep") is this batch.
last_shown = 0


def news(now: Batch) -> None:
    """Print a line for every tenth of the jobs, or when the project cannot be asked."""
    global last_shown  # noqa: PLW0603  (a cell's variables are global)
    if now.nover - last_shown >= now.njobs / 10 or now.is_over:
        last_shown = now.nover
        end = now.expected_end  # None while there is no estimate
        print(f"  {now}", "" if end is None else f"about {end - time.time():.0f} s to go")
    if now.trouble:
        print(f"  {now.trouble}")


batch.wait(progress=news, timeout=600)
print(batch.counts())
for failure in batch.failures():
    print(f"{failure.name}: {failure.why}")

# %% Fetch
# Each job gets a folder. Outputs that are there already are not fetched again.
fetched = batch.fetch(directory / "results", threads=8)
print(f"{fetched.fetched} jobs' outputs came, {len(fetched.errors)} could not be fetched")

orbits = {}
for name, rate in zip(jobs, RATES, strict=True):
    output = fetched.directory / name / "orbit.txt"
    if output.exists():
        orbits[rate] = np.loadtxt(output)
print(f"{len(orbits)} of {len(RATES)} growth rates are there")

# %% Tidy up
# The project may now delete the batch's files.
batch.retire()

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
    2, 1, figsize=(10, 7.5), sharex=True, height_ratios=[3, 1], layout="constrained"
)
figure.suptitle("A population that grows logistically", fontsize=16, weight="bold")

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
below.set_xlabel(f"growth rate; one job each, {len(orbits)} of {len(RATES)} done")
below.set_xlim(2.5, 4.0)

figure.savefig(PICTURE, dpi=150)
print(f"The plot is in {PICTURE}")
