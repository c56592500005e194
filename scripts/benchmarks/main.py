"""Measures the daemon and the commands against a stand-in project; and the local project."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import shlex
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.benchmarks import floor
from scripts.benchmarks.bench import Bench, scaled, standin
from scripts.benchmarks.cases import CASES, MEASURES, OURS_ALONE, WITHOUT_PEER, Case
from scripts.benchmarks.client import Gahp
from scripts.benchmarks.measure import MB, median, spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scripts.benchmarks.measure import Measure, Sample

_LABEL = 52
_TITLE = 44
_NAMES = [*CASES, *MEASURES]

_FOOTER = """
seconds: the median of {repeat}, interleaved with the floor and the other program; load average
before: {before}, after: {after}.
floor: the same requests, recorded by the stand-in and sent again with http.client from a process of
their own, over as many kept connections as the program may use, except where one needs the answer
to another. For spawn and version: a Python program that greets and echoes. For first-ping: one
request, and the import of http.client.
spread: the largest less the smallest, over the median. CPU: of the program, user and
system. peak: VmHWM. RPCs: as the stand-in counts them.
fsyncs: calls of os.fsync and os.fdatasync, counted in the program (counting/sitecustomize.py);
those that SQLite makes in C (the ledger's, the cache's) are not among them."""


def main() -> int:
    """Run the benchmarks; return 1 if one could not be run."""
    arguments = _parser().parse_args()
    names, other = _cases_and_program(arguments.words)
    names += arguments.only or []
    size = 0.1 if arguments.quick else arguments.size
    programs = [[str(Path(sys.executable).with_name("boinc_gahp"))]]
    if other:
        programs.append(shlex.split(other))
    alone = programs if len(programs) == 1 or _has_blah(programs[1]) else programs[:1]
    chosen = [name for name in _NAMES if not names or name in names]
    failed = False
    before = _load()
    if any(name in CASES for name in chosen):
        print(_header(several=len(programs) > 1), flush=True)
    for name in chosen:
        peers = alone if name.startswith(OURS_ALONE) else programs
        if name in CASES:
            lines = _run(name, peers, size, arguments.repeat)
        else:
            if name == next(each for each in chosen if each in MEASURES):
                print(_measures_header(several=len(programs) > 1))
            peers = programs[:1] if name.startswith(WITHOUT_PEER) else peers
            columns = [_measure(name, each, size) for each in peers]
            failed |= any(isinstance(column, str) for column in columns)
            lines = _rows(name, columns)
        for line in lines:
            failed |= "not measured: " in line
            print(line, flush=True)
    if any(name in CASES for name in chosen):
        print(_FOOTER.format(repeat=arguments.repeat, before=before, after=_load()))
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures boinc_gahp against a project that answers from memory, and (local-…) "
        "the local project. The numbers depend on the machine and on its other load. The cases of "
        "the first table have a floor: the same requests with nothing around them. In the second "
        "table an aim is the largest good value (for 1/s, the smallest). 'of floor', 'of aim' and "
        "'of other' are the ratios of our number to those.",
        epilog=f"cases: {', '.join(_NAMES)}",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="CASE|PROGRAM",
        help="cases to run (default: all), and the command line of another GAHP program to measure",
    )
    parser.add_argument("--only", action="append", choices=_NAMES, help="the same as CASE")
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="N", help="runs of each case with a floor"
    )
    parser.add_argument(
        "--size",
        type=float,
        default=1.0,
        metavar="X",
        help="multiply the numbers of jobs, files and requests by this",
    )
    parser.add_argument("--quick", action="store_true", help="the same as --size 0.1")
    return parser


def _cases_and_program(words: Sequence[str]) -> tuple[list[str], str]:
    """Tell cases from the other program, which is the one word that is no case."""
    others = [word for word in words if word not in _NAMES]
    for word in others:
        if len(others) > 1 or not (command := shlex.split(word)) or not shutil.which(command[0]):
            near = difflib.get_close_matches(word, _NAMES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            _parser().error(f"{word!r} is neither a case nor a program{hint}")
    return [word for word in words if word in _NAMES], next(iter(others), "")


def _has_blah(command: Sequence[str]) -> bool:
    """Return whether a program is a boinc_gahp in Python, which has BLAH_* and ``batch``, too."""
    with (
        tempfile.TemporaryDirectory() as home,
        contextlib.suppress(RuntimeError, OSError),
        Gahp(command, Path(home), asynchronous=False) as gahp,
    ):
        return b"BLAH_PING" in gahp.call("COMMANDS").split(b" ")
    return False


@contextlib.contextmanager
def _bench(command: Sequence[str], size: float) -> Iterator[Bench]:
    """Start a stand-in; return the parameters of one run."""
    with (
        tempfile.TemporaryDirectory(prefix="boinc_gahp-bench-") as directory,
        standin() as url,
    ):
        yield Bench(command, url, Path(directory), size, "r")


# -- with a floor


def _run(name: str, programs: Sequence[Sequence[str]], size: float, repeat: int) -> Iterator[str]:
    """Run a case, all programs and the floor in turn; yield its rows."""
    case = CASES[name]
    samples: list[list[Sample]] = [[] for _ in programs]
    floors: list[float] = []
    failures: dict[int, str] = {}
    number = scaled(case.number, size)
    for _ in range(repeat):
        for i, command in enumerate(programs):
            if i in failures:
                continue
            try:
                with _bench(command, size) as bench:
                    samples[i].append(case.run(bench, number))
                    if not i:
                        floors.append(_floor(case, bench, number, samples[0][-1].rpcs))
            except (RuntimeError, OSError) as error:
                failures[i] = f"{type(error).__name__}: {error}"
    if 0 in failures:
        yield f"{name}: not measured: {failures[0]}"
        return
    others = [each for i, each in enumerate(samples) if i and i not in failures]
    yield from _case_rows(case.title.format(number), samples[0], floors, others)
    yield from (f"  other: not measured: {error}" for error in failures.values())


def _floor(case: Case, bench: Bench, number: int, rpcs: dict[str, int]) -> float:
    if case.floor is not None:
        return case.floor(bench, number)
    bench.control("restore")
    bench.control("record")
    seconds = floor.measured(bench.record, bench.url, case.connections)
    if (again := bench.recorded(bench.directory / "again")) != rpcs:
        raise RuntimeError(f"the floor made other requests: {again} instead of {rpcs}")
    return seconds


def _header(*, several: bool) -> str:
    head = (
        f"{'':{_TITLE}}{'seconds':>10}{'spread':>8}{'floor':>10}{'of floor':>9}{'CPU':>9}"
        f"{'peak':>9}{'RPCs':>8}{'fsyncs':>8}"
    )
    return head + (f"{'of other':>9}" if several else "")


def _case_rows(
    title: str, ours: list[Sample], floors: list[float], others: list[list[Sample]]
) -> Iterator[str]:
    least = statistics.median(floors)
    middle, peers = median(ours), [median(each) for each in others]
    row = _row(title, ours, least, _seconds(least))
    for peer in peers:
        row += f"{middle.seconds / peer.seconds:>9.2f}"
    yield row
    for other in others:
        yield _row("  the other program", other, least, "")
    for label, seconds in middle.parts.items():
        row = f"{f'  {label}':<{_TITLE}}{_seconds(seconds):>10}"
        for peer in peers:
            row += f"{seconds / peer.parts[label]:>70.2f}"
        yield row


def _row(title: str, samples: list[Sample], least: float, floor_shown: str) -> str:
    middle = median(samples)
    return (
        f"{title:<{_TITLE}}{_seconds(middle.seconds):>10}{_spread(samples):>8}{floor_shown:>10}"
        f"{middle.seconds / least:>9.2f}{middle.processor:>7.2f} s"
        f"{middle.peak_memory / MB:>6.0f} MB{sum(middle.rpcs.values()):>8,}"
        f"{'-' if middle.syncs is None else format(middle.syncs, ','):>8}"
    )


def _spread(samples: list[Sample]) -> str:
    return f"{spread([sample.seconds for sample in samples]):.0%}" if len(samples) > 1 else "-"


def _seconds(seconds: float) -> str:
    return f"{seconds:.{4 if seconds < 1 else 2}f} s"


def _load() -> str:
    return " ".join(f"{number:.2f}" for number in os.getloadavg())


# -- without


def _measures_header(*, several: bool) -> str:
    header = f"\n{'':{_LABEL}}{'boinc_gahp':>14}{'aim':>10}{'of aim':>8}"
    return header + (f"{'other':>14}{'of other':>9}" if several else "")


def _measure(name: str, command: Sequence[str], size: float) -> list[Measure] | str:
    """Run one benchmark with one program; return its measures, or why there are none."""
    try:
        with _bench(command, size) as bench:
            return list(MEASURES[name](bench))
    except (RuntimeError, OSError) as error:
        return f"{type(error).__name__}: {error}"


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
                value = other[number].value
                ratio = measure.value / value if value else float("inf")
                row += f"{_told(other[number]):>14}{ratio:>9.2f}"
        yield row + ("  missed" if measure.missed else "")
    yield from (f"  other: not measured: {other}" for other in others if isinstance(other, str))


def _told(measure: Measure) -> str:
    digits = 4 if measure.unit == "s" and measure.value < 1 else 1
    return f"{measure.value:,.{digits}f} {measure.unit}"


if __name__ == "__main__":
    sys.exit(main())
