"""A Python function on a grid, each row a job on a volunteer's computer, and a plot of the values.

A population grows logistically, with one rate in even years and another one in odd years. The
function returns the Lyapunov exponents for a row of such rates: above zero, there is chaos::

    python scripts/examples/function_grid.py

The settings name the project. For a local one with an app for programs, see docs/local-project.rst,
"Jobs in containers". For a real project nothing has to change but the size of a call: with more
STEPS and a finer GRID, let each call compute for some minutes. The calls go on without this
program: run it again, and it picks them up. It needs boinc_gahp's extra ``functions``, and
matplotlib.
"""

import math
import sys

from boinc_gahp import Project

try:
    import cloudpickle  # noqa: F401  (functions are sent with it)
    import matplotlib.pyplot as plt
except ImportError as error:
    sys.exit(f"{error}: pip install 'boinc_gahp[functions]' matplotlib")

STEPS = 500
GRID = [2.4 + 1.6 * n / 12 for n in range(12)]
#: None: a slim image with this version of Python.
IMAGE = sys.argv[1] if len(sys.argv) > 1 else None


def exponents(odd):
    """Return the exponents for a rate in odd years, and each rate of the grid in even ones."""
    row = []
    for even in GRID:
        population, total = 0.5, 0.0
        for year in range(STEPS):
            rate = odd if year % 2 else even
            total += math.log(max(abs(rate * (1 - 2 * population)), 1e-4))
            population *= rate * (1 - population)
        row.append(total / STEPS)
    return row


with Project.from_settings() as project:
    rows = project.function(exponents, image=IMAGE).map(GRID).results(progress=True)

plt.imshow(rows, origin="lower", extent=[GRID[0], GRID[-1]] * 2, cmap="RdBu_r", vmin=-1, vmax=1)
plt.colorbar(label="Lyapunov exponent")
plt.xlabel("rate in even years")
plt.ylabel("rate in odd years")
plt.savefig("exponents.png")
