"""The app of two examples: it computes how a population grows logistically.

``sweep.py`` makes jobs for it on the project, ``parameter_sweep.py`` submits them from outside.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(rate: float, generations: int, shown: int = 8) -> None:
    """Write the last populations, ``shown`` of them, into ``orbit.txt``."""
    population = 0.5
    orbit = []
    for _ in range(generations):
        population *= rate * (1 - population)
        orbit.append(population)
    last = "".join(f"{value:.6f}\n" for value in orbit[-shown:])
    Path("orbit.txt").write_text(last, "utf-8")


if __name__ == "__main__":
    main(float(sys.argv[1]), *map(int, sys.argv[2:]))
