"""The app of two examples: it computes how a population grows logistically.

``sweep.py`` makes jobs for it on the project, ``parameter_sweep.py`` submits them from outside.
"""

from __future__ import annotations

import json
from pathlib import Path

_SHOWN = 8


def main() -> None:
    """Read ``parameters.json``, write the last populations into ``orbit.txt``."""
    parameters = json.loads(Path("parameters.json").read_text("utf-8"))
    population = 0.5
    orbit = []
    for _ in range(parameters["generations"]):
        population *= parameters["rate"] * (1 - population)
        orbit.append(population)
    shown = parameters.get("shown", _SHOWN)
    last = "".join(f"{value:.6f}\n" for value in orbit[-shown:])
    Path("orbit.txt").write_text(last, "utf-8")


if __name__ == "__main__":
    main()
