"""Measures the daemon against a stand-in project, beside another program; and the local project."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.benchmarks.cases import CASES, WITHOUT_PEER, Bench

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scripts.benchmarks.measure import Measure

_LABEL = 52


def main() -> int:
    """Run the benchmarks; return 1 if one could not be run."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures boinc_gahp against a project that answers from memory, and (local-…) "
        "the local project. The numbers depend on the machine and on its other load. An aim is the "
        "largest good value (for 1/s, the smallest); 'of aim' is the ratio of the number to it.",
    )
    parser.add_argument(
        "other", nargs="?", help="the command line of another GAHP program to measure"
    )
    parser.add_argument("--only", action="append", choices=CASES, help="may be given repeatedly")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    arguments = parser.parse_args()
    ours = [str(Path(sys.executable).with_name("boinc_gahp"))]
    programs = [ours] + ([shlex.split(arguments.other)] if arguments.other else [])
    header = f"{'':{_LABEL}}{'boinc_gahp':>14}{'aim':>10}{'of aim':>8}"
    print(header + (f"{'other':>14}{'ratio':>8}" if len(programs) > 1 else ""))
    failed = False
    for name in arguments.only or CASES:
        peers = programs[:1] if name.startswith(WITHOUT_PEER) else programs
        columns = [_measure(name, each, quick=arguments.quick) for each in peers]
        failed |= any(isinstance(column, str) for column in columns)
        for line in _rows(name, columns):
            print(line, flush=True)
    return int(failed)


def _measure(name: str, command: Sequence[str], *, quick: bool) -> list[Measure] | str:
    """Run one benchmark with one program; return its measures, or why there are none."""
    with tempfile.TemporaryDirectory(prefix="boinc_gahp-bench-") as directory, _standin() as url:
        bench = Bench(command, url, Path(directory), quick, "r")
        try:
            return list(CASES[name](bench))
        except (RuntimeError, OSError) as error:
            return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _standin() -> Iterator[str]:
    """Start a stand-in project; return its URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "scripts.benchmarks.standin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.communicate()


def _rows(name: str, columns: list[list[Measure] | str]) -> Iterator[str]:
    ours, *others = columns
    if isinstance(ours, str):
        yield f"{name}: not measured: {ours}"
        return
    for number, measure in enumerate(ours):
        row = f"{measure.label:<{_LABEL}}{_told(measure):>14}"
        aim = f"{measure.aim:g} {measure.unit}" if measure.aim is not None else ""
        row += f"{aim:>10}"
        row += f"{measure.value / measure.aim:>8.2f}" if measure.aim else f"{'':>8}"
        for other in others:
            if not isinstance(other, str):
                ratio = other[number].value / measure.value if measure.value else float("inf")
                row += f"{_told(other[number]):>14}{ratio:>8.2f}"
        yield row + ("  missed" if measure.missed else "")
    yield from (f"  other: not measured: {other}" for other in others if isinstance(other, str))


def _told(measure: Measure) -> str:
    digits = 4 if measure.unit == "s" and measure.value < 1 else 1
    return f"{measure.value:,.{digits}f} {measure.unit}"


if __name__ == "__main__":
    sys.exit(main())
