"""A parameter sweep on volunteers' computers, from the first line to the plot.

A population grows logistically: each year it is ``rate * x * (1 - x)`` of what there is room for.
For small rates it settles down; for larger ones it swings between 2, 4, 8, ... values, and then it
is chaos. 200 jobs, one for each rate, follow the population for some thousand years; this script
submits them, waits for them, fetches what they found, and draws it::

    python scripts/examples/parameter_sweep.py sweep.png

It takes about a minute on any machine with Python: instead of a real BOINC project it starts one on
this machine, with four volunteers. To use yours, which has to have the app, replace the cell "The
project" with::

    project = Project.from_settings()       # or Project(url, authenticator)

The lines ``# %%`` divide the script into cells: editors such as VS Code, PyCharm and Spyder run
them one by one, as a notebook. Each cell needs only those above it. matplotlib has to be installed.
"""

# %% What is needed
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

# What is opened below is closed when this ends, and the directory is removed.
running = ExitStack()
atexit.register(running.close)
directory = Path(tempfile.mkdtemp(prefix="parameter-sweep-"))
running.callback(shutil.rmtree, directory)

# %% The project
# A project of our own, which goes away with everything in it when this script ends. Its app is a
# program that reads parameters.json and writes orbit.txt: look at it, it has no idea of BOINC.
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
# One for each growth rate. Small inputs may travel with the job, as here; a path instead of an
# InlineFile is a file of yours, which is sent once however many jobs use it.
RATES = np.linspace(2.5, 4.0, 200, endpoint=False)
GENERATIONS = 3000
SHOWN = 200  # populations that each job writes down, the last ones

jobs = {}
for number, rate in enumerate(RATES):
    parameters = {"rate": float(rate), "generations": GENERATIONS, "shown": SHOWN}
    name = f"logistic-sweep-{number:03d}"
    jobs[name] = Job(name=name, inputs={"parameters.json": InlineFile(json.dumps(parameters))})

# %% Look before you leap
# Nothing is sent by this. It finds mistakes in the jobs, and tells how large the batch would be.
needs = Parameters(fpops_est=3.0 * GENERATIONS, delay_bound=86400)
plan = project.plan("logistic", jobs.values(), name="logistic-sweep", parameters=needs)
print(plan)
for name, problem in plan.problems.items():
    print(f"{name}: {problem}")

# %% Submit
# With a name of its own the batch is submitted once, however often this cell is run, and also if it
# is interrupted, or the network fails, and it is run again tomorrow. Names of batches and jobs are
# taken for ever, on the whole project: on a real one, put your own and a date into them.


def show(progress: Progress) -> None:
    """Print how far the submit is."""
    if progress.total:
        print(f"  {progress.step}: {progress.done} of {progress.total} {progress.unit}")


batch = project.submit(
    "logistic", jobs.values(), name="logistic-sweep", parameters=needs, progress=show
)
print(batch)

# %% Wait
# This can be interrupted, too. In another session, project.batch("logistic-sweep") is this batch.
last_shown = 0


def news(now: Batch) -> None:
    """Print a line for every tenth of the jobs, or when the project cannot be asked."""
    global last_shown  # noqa: PLW0603  (a cell's variables are global)
    if now.nover - last_shown >= now.njobs / 10 or now.is_over:
        last_shown = now.nover
        end = now.expected_end  # None while nobody can tell
        print(f"  {now}", "" if end is None else f"about {end - time.time():.0f} s to go")
    if now.trouble:
        print(f"  {now.trouble}")


batch.wait(progress=news, timeout=600)
print(batch.counts())
for failure in batch.failures():
    print(f"{failure.name}: {failure.why}")

# %% Fetch
# A folder for each job; what is there already is not fetched again.
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
# Above: where the population goes. Below: whether it is chaos. The Lyapunov exponent says how fast
# two populations that were nearly the same become different; below zero they become the same.
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
