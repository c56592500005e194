"""The benchmarks: each drives a program and returns measures."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from scripts.benchmarks.batch import batch_status, batch_submit
from scripts.benchmarks.client import Gahp
from scripts.benchmarks.localproject import local_queries, local_submit, local_transitions
from scripts.benchmarks.looking import people_list, people_show
from scripts.benchmarks.measure import MB, Measure
from scripts.benchmarks.sending import people_submit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


@dataclass
class Bench:
    """The parameters of a benchmark.

    Attributes:
        command: the GAHP program.
        url: the stand-in's.
        directory: for files; empty at first.
        quick: whether to use smaller numbers.
        round: a prefix that distinguishes the batches of one program from those of another.
    """

    command: Sequence[str]
    url: str
    directory: Path
    quick: bool
    round: str

    def gahp(self, *, select: bool = True) -> Gahp:
        """Start the program; all runs share a home directory, as those of a user's daemon do."""
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        gahp = Gahp(self.command, home)
        if select:
            gahp.call(f"BOINC_SELECT_PROJECT {self.url} {'0' * 32}")
        return gahp

    def some(self, number: int) -> int:
        """Return a number, or a tenth of it if ``quick`` is set."""
        return number // 10 if self.quick else number

    def control(self, action: str, **query: object) -> object:
        """Send a control request to the stand-in, and return its answer."""
        parts = urlsplit(self.url)
        target = f"http://{parts.netloc}/{action}?{urlencode(query)}"
        with urlopen(target) as answer:
            return json.load(answer)


def spawn(bench: Bench) -> Iterator[Measure]:
    """Spawn to banner."""
    times = []
    for _ in range(5 if bench.quick else 20):
        with bench.gahp(select=False) as gahp:
            times.append(gahp.banner_after)
    yield Measure("spawn to banner, median", statistics.median(times), "s", 0.08)


def version(bench: Bench) -> Iterator[Measure]:
    """VERSION round trips."""
    number = bench.some(20_000)
    with bench.gahp(select=False) as gahp:
        gahp.call("VERSION")
        began = time.perf_counter()
        for _ in range(number):
            gahp.call("VERSION")
        yield Measure("VERSION round trips", number / (time.perf_counter() - began), "1/s")


def pings(bench: Bench) -> Iterator[Measure]:
    """Pings one after the other."""
    number = bench.some(1000)
    with bench.gahp() as gahp:
        _ping(gahp)
        began = time.perf_counter()
        for _ in range(number):
            _ping(gahp)
        yield Measure("pings one after the other", number / (time.perf_counter() - began), "1/s")


def _ping(gahp: Gahp) -> None:
    number = gahp.next_id()
    gahp.call(f"BOINC_PING {number}")
    gahp.wait_for([number])


def pings_at_once(bench: Bench) -> Iterator[Measure]:
    """500 pings at once, each answered by the project after 50 ms."""
    number = bench.some(500)
    with bench.gahp() as gahp:
        _ping(gahp)
        bench.control("latency", seconds=0.05)
        try:
            began = time.perf_counter()
            numbers = [gahp.next_id() for _ in range(number)]
            for each in numbers:
                gahp.send(f"BOINC_PING {each}")
            for _ in numbers:
                gahp.return_line()
            returned = time.perf_counter() - began
            gahp.wait_for(numbers)
            took = time.perf_counter() - began
        finally:
            bench.control("latency", seconds=0)
        yield Measure(f"{number} pings at once, 50 ms latency: Return Lines", returned, "s")
        yield Measure("  all results", took, "s")
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB")


def submit(bench: Bench) -> Iterator[Measure]:
    """Submit of 10,000 jobs with one file."""
    number = bench.some(10_000)
    path = _file(bench, "one.dat", b"one input for all\n")
    jobs = [(f"{bench.round}ten#1.{i}", [path]) for i in range(number)]
    with bench.gahp() as gahp:
        _ping(gahp)
        before = gahp.processor_time
        line, took = _submit(gahp, f"{bench.round}ten", jobs)
        used = gahp.processor_time - before
        _must_be_there(bench, f"{bench.round}ten", number)
        yield Measure(f"submit {number:,} jobs, 1 file: Return Line", line, "s", 0.3)
        yield Measure("  result", took, "s")
        yield Measure("    processor time", used, "s")
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB", 150)


def new_files(bench: Bench) -> Iterator[Measure]:
    """Submit of 2,000 jobs with 2,000 new files."""
    number = bench.some(2000)
    jobs = []
    for i in range(number):
        path = _file(bench, f"{bench.round}{i}.dat", f"{bench.round} input {i}\n".encode() * 50)
        jobs.append((f"{bench.round}new#1.{i}", [path]))
    with bench.gahp() as gahp:
        _ping(gahp)
        line, took = _submit(gahp, f"{bench.round}new", jobs)
        _must_be_there(bench, f"{bench.round}new", number)
        yield Measure(f"submit {number:,} jobs, as many new files: Return Line", line, "s")
        yield Measure("  result", took, "s")
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB")


def big_file(bench: Bench) -> Iterator[Measure]:
    """A file of 1 GB, and the same again."""
    size = bench.some(1_000_000_000)
    path = bench.directory / f"{bench.round}big.dat"
    block = hashlib.sha512(bench.round.encode()).digest() * 15_625  # 1 MB
    with path.open("wb") as file:
        for _ in range(size // len(block)):
            file.write(block)
    _age(path)
    gigabytes = size / 1e9
    yield Measure(f"{gigabytes:g} GB: md5 alone, as a floor", _md5_time(path), "s")
    yield Measure("  one upload alone, as a floor", _upload_time(bench, path), "s")
    again = f"{gigabytes:g} GB"
    with bench.gahp() as gahp:
        _ping(gahp)
        for label, batch in ((again, "big1"), ("  the same again", "big2")):
            before, used = gahp.bytes_read, gahp.processor_time
            jobs = [(f"{bench.round}{batch}#1.0", [str(path)])]
            _, took = _submit(gahp, f"{bench.round}{batch}", jobs)
            yield Measure(f"{label}: result", took, "s")
            yield Measure("    processor time", gahp.processor_time - used, "s")
            yield Measure("    bytes read", (gahp.bytes_read - before) / MB, "MB")
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB", 60)
    with bench.gahp() as gahp:
        _ping(gahp)
        before = gahp.bytes_read
        _, took = _submit(gahp, f"{bench.round}big3", [(f"{bench.round}big3#1.0", [str(path)])])
        yield Measure("  the same from a new process: result", took, "s")
        yield Measure("    bytes read", (gahp.bytes_read - before) / MB, "MB")
    path.unlink()


def statuses(bench: Bench) -> Iterator[Measure]:
    """Statuses of 100,000 jobs."""
    number = bench.some(100_000)
    batch = f"condor#submit.example.edu#uppercase#{bench.round}"
    bench.control("seed", batch=batch, jobs=number, app="uppercase")
    # The stand-in makes and compresses its reply when it is first asked.
    with bench.gahp() as gahp:
        _query(gahp, batch)
    with bench.gahp() as gahp:
        _ping(gahp)
        for label in (f"statuses of {number:,} jobs: result", "  the same again: result"):
            before, began = gahp.processor_time, time.perf_counter()
            line = _query(gahp, batch)
            took = time.perf_counter() - began
            if line.count(b" DONE") != number:
                raise RuntimeError(f"{line.count(b' DONE')} of {number} statuses came")
            yield Measure(label, took, "s", 1.0)
            yield Measure("    processor time", gahp.processor_time - before, "s")
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB", 200)


def _query(gahp: Gahp, batch: str) -> bytes:
    number = gahp.next_id()
    gahp.call(f"BOINC_QUERY_BATCHES {number} 0 1 {batch}")
    line = gahp.result(number)
    if line.split(b" ")[1] != b"NULL":
        raise RuntimeError(f"the query failed: {line[:500].decode(errors='replace')}")
    return line


def fetches(bench: Bench) -> Iterator[Measure]:
    """300 fetches of 3 files."""
    number = bench.some(300)
    batch = f"condor#submit.example.edu#multi#{bench.round}"
    bench.control("seed", batch=batch, jobs=number, app="multi")
    home = bench.directory / f"{bench.round}outputs"
    home.mkdir()
    with bench.gahp() as gahp:
        _query(gahp, batch)
        before, began = gahp.processor_time, time.perf_counter()
        numbers = []
        for i in range(number):
            (home / str(i)).mkdir()
            numbers.append(gahp.next_id())
            job = f"{batch}#1.{i}"
            reply = gahp.call(
                f"BOINC_FETCH_OUTPUT {numbers[-1]} {job} {home / str(i)} stderr.txt ALL 0"
            )
            if reply != b"S":
                raise RuntimeError(f"BOINC_FETCH_OUTPUT was answered {reply!r}")
        gahp.wait_for(numbers)
        took = time.perf_counter() - began
        used = gahp.processor_time - before
        there = sum(1 for path in home.glob("*/out*") if path.stat().st_size)
        if there != 3 * number:
            raise RuntimeError(f"{there} of {3 * number} outputs came")
        yield Measure(f"{number} fetches of 3 files: results", took, "s")
        yield Measure("    processor time", used, "s")
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB")


#: Benchmarks of commands that no other program has, by the beginnings of their names.
WITHOUT_PEER = ("batch-", "local-", "people-")

#: By name, in the order of the table.
CASES: dict[str, Callable[[Bench], Iterator[Measure]]] = {
    "spawn": spawn,
    "version": version,
    "pings": pings,
    "pings-at-once": pings_at_once,
    "submit": submit,
    "new-files": new_files,
    "big-file": big_file,
    "statuses": statuses,
    "fetches": fetches,
    "batch-submit": batch_submit,
    "batch-status": batch_status,
    "local-submit": local_submit,
    "local-transitions": local_transitions,
    "local-queries": local_queries,
    "people-submit": people_submit,
    "people-list": people_list,
    "people-show": people_show,
}


def _file(bench: Bench, name: str, contents: bytes) -> str:
    path = bench.directory / name
    path.write_bytes(contents)
    _age(path)
    return str(path)


def _age(path: Path) -> None:
    """Make a file an hour old, because the MD5 of a new file is not stored."""
    then = time.time() - 3600
    os.utime(path, (then, then))


def _submit(gahp: Gahp, batch: str, jobs: list[tuple[str, list[str]]]) -> tuple[float, float]:
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


def _must_be_there(bench: Bench, batch: str, number: int) -> None:
    there = bench.control("jobs", batch=batch)
    if there != number:
        raise RuntimeError(f"{there} of {number} jobs of {batch} are on the project")


def _md5_time(path: Path) -> float:
    began = time.perf_counter()
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return time.perf_counter() - began


def _upload_time(bench: Bench, path: Path) -> float:
    """Send a file to the stand-in by the plainest means."""
    parts = urlsplit(bench.url)
    began = time.perf_counter()
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        head = f"POST /nothing HTTP/1.1\r\nContent-Length: {path.stat().st_size}\r\n\r\n"
        connection.sendall(head.encode())
        with path.open("rb") as file:
            connection.sendfile(file)
        connection.recv(1)
    return time.perf_counter() - began
