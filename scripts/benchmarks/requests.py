"""Requests of HTCondor 9, as benchmarks make them: one waits for its result."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.benchmarks.bench import Bench
    from scripts.benchmarks.client import Gahp


def ping(gahp: Gahp) -> None:
    """Make a BOINC_PING."""
    number = gahp.next_id()
    gahp.call(f"BOINC_PING {number}")
    gahp.wait_for([number])


def query(gahp: Gahp, batch: str) -> bytes:
    """Ask for the statuses of a batch; return the Result Line."""
    number = gahp.next_id()
    gahp.call(f"BOINC_QUERY_BATCHES {number} 0 1 {batch}")
    line = gahp.result(number)
    if line.split(b" ")[1] != b"NULL":
        raise RuntimeError(f"the query failed: {line[:500].decode(errors='replace')}")
    return line


def submit(gahp: Gahp, batch: str, jobs: list[tuple[str, list[str]]]) -> tuple[float, float]:
    """Submit jobs with input files; return the seconds to the Return Line and to the result."""
    number = gahp.next_id()
    words = ["BOINC_SUBMIT", number, batch, "uppercase", str(len(jobs))]
    for name, paths in jobs:
        words += [name, "2", "-n", "5", str(len(paths))]
        for path in paths:
            words += [path, "in"]
    words += ["NULL"] * 6
    line = " ".join(words).encode()
    began = time.perf_counter()
    if gahp.call(line) != b"S":
        raise RuntimeError("BOINC_SUBMIT was not accepted")
    returned = time.perf_counter() - began
    gahp.wait_for([number])
    return returned, time.perf_counter() - began


def must_be_there(bench: Bench, batch: str, number: int) -> None:
    """Raise a RuntimeError if the stand-in does not have that many jobs of a batch."""
    there = bench.control("jobs", batch=batch)
    if there != number:
        raise RuntimeError(f"{there} of {number} jobs of {batch} are on the project")


def new_file(bench: Bench, name: str, contents: bytes) -> str:
    """Write a file that seems to be an hour old; return its path."""
    path = bench.directory / name
    path.write_bytes(contents)
    age(path)
    return str(path)


def age(path: Path) -> None:
    """Make a file an hour old, because the MD5 of a new file is not stored."""
    then = time.time() - 3600
    os.utime(path, (then, then))
