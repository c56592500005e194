"""The cases of HTCondor 9: ``BOINC_*`` requests, each with its floor."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scripts.benchmarks.client import Gahp
from scripts.benchmarks.measure import Sample
from scripts.benchmarks.requests import (
    age,
    must_be_there,
    new_file,
    ping,
    query,
    submit as submit_jobs,
)

if TYPE_CHECKING:
    from scripts.benchmarks.bench import Bench

#: Requests that a gridmanager has under way, where the table of speeds says so.
IN_FLIGHT = 50

#: A program in Python that greets, and answers every line, without imports.
_ECHO = """
import sys
write = sys.stdout.buffer.raw.write
write(b"$GahpVersion 0.0.0 Jan  1 2026 Floor $\\r\\n")
while sys.stdin.buffer.readline():
    write(b"S $GahpVersion:\\ 0.0.0\\ Jan\\ 1\\ 2026\\ Floor\\ $\\r\\n")
"""

#: The first request of a process, with the import of http.client.
_FIRST_PING = """
import sys, time
began = time.perf_counter()
import http.client
connection = http.client.HTTPConnection(sys.argv[1])
connection.request(
    "POST", "/bench/submit_rpc_handler.php", "request=%3Cping%3E%3C%2Fping%3E",
    {"Content-Type": "application/x-www-form-urlencoded"},
)
connection.getresponse().read()
print(time.perf_counter() - began)
"""


def spawn(bench: Bench, number: int) -> Sample:
    """Spawn to banner: the mean of some. Processor time and memory are up to the first answer."""
    total = Sample(parts={"spawn to first Return Line": 0.0})
    for _ in range(number):
        with bench.gahp(select=False) as gahp:
            total.seconds += gahp.banner_after / number
            total.parts["spawn to first Return Line"] += gahp.answered_after / number
            total.processor += gahp.processor_time / number
            total.peak_memory = max(total.peak_memory, gahp.peak_memory)
    return total


def spawn_floor(bench: Bench, number: int) -> float:
    """Spawn to banner of a Python program that imports nothing."""
    total = 0.0
    for _ in range(number):
        with _echo(bench) as gahp:
            total += gahp.banner_after
    return total / number


def first_ping(bench: Bench, number: int) -> Sample:
    """From the banner to the answer to the first BOINC_PING: the mean of some."""
    total = Sample()
    for _ in range(number):
        with bench.gahp(select=False) as gahp, bench.taken(gahp) as sample:
            gahp.call(f"BOINC_SELECT_PROJECT {bench.url} {'0' * 32}")
            ping(gahp)
        total.seconds += sample.seconds / number
        total.processor += sample.processor / number
        total.peak_memory = max(total.peak_memory, sample.peak_memory)
        total.rpcs = sample.rpcs
    return total


def first_ping_floor(bench: Bench, number: int) -> float:
    """Make one request from a new Python process, and import http.client for it."""
    command = [sys.executable, "-c", _FIRST_PING, urlsplit(bench.url).netloc]
    return (
        sum(
            float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            for _ in range(number)
        )
        / number
    )


def version(bench: Bench, number: int) -> Sample:
    """VERSION, each answered before the next."""
    with bench.gahp(select=False, counting=True) as gahp:
        gahp.call("VERSION")
        with bench.taken(gahp) as sample:
            for _ in range(number):
                gahp.call("VERSION")
    return sample


def version_floor(bench: Bench, number: int) -> float:
    """As many lines answered by a Python program that does nothing else."""
    with _echo(bench) as gahp:
        began = time.perf_counter()
        for _ in range(number):
            gahp.call("VERSION")
        return time.perf_counter() - began


def _echo(bench: Bench) -> Gahp:
    return Gahp([sys.executable, "-c", _ECHO], bench.home, asynchronous=False)


def pings(bench: Bench, number: int) -> Sample:
    """BOINC_PINGs, each answered before the next."""
    with bench.gahp(counting=True) as gahp:
        ping(gahp)
        with bench.taken(gahp) as sample:
            for _ in range(number):
                ping(gahp)
    return sample


def pings_at_once(bench: Bench, number: int) -> Sample:
    """BOINC_PINGs at once, each answered by the project after 50 ms."""
    with bench.gahp(counting=True) as gahp:
        ping(gahp)
        bench.control("latency", seconds=0.05)
        with bench.taken(gahp) as sample:
            began = time.perf_counter()
            numbers = [gahp.next_id() for _ in range(number)]
            for each in numbers:
                gahp.send(f"BOINC_PING {each}")
            for _ in numbers:
                gahp.return_line()
            sample.parts["all Return Lines"] = time.perf_counter() - began
            gahp.wait_for(numbers)
    return sample


def submit(bench: Bench, number: int) -> Sample:
    """BOINC_SUBMIT of jobs with one shared file."""
    path = new_file(bench, "one.dat", b"one input for all\n")
    return _submit(bench, "ten", [[path]] * number)


def new_files(bench: Bench, number: int) -> Sample:
    """BOINC_SUBMIT of jobs, each with a file that is new, to a project with 5 ms latency."""
    paths = [
        [new_file(bench, f"{i}.dat", f"{bench.round} input {i}\n".encode() * 50)]
        for i in range(number)
    ]
    return _submit(bench, "new", paths, latency=0.005)


def upload(bench: Bench, number: int) -> Sample:
    """BOINC_SUBMIT of a job with one file of so many MB."""
    path = bench.directory / "big.dat"
    with path.open("wb") as file:
        for i in range(number):
            file.write(f"{i:1000}".encode() * 1000)
    age(path)
    return _submit(bench, "big", [[str(path)]])


def _submit(bench: Bench, name: str, inputs: list[list[str]], latency: float = 0.0) -> Sample:
    batch = f"{bench.round}{name}"
    jobs = [(f"{batch}#1.{i}", paths) for i, paths in enumerate(inputs)]
    with bench.gahp(counting=True) as gahp:
        ping(gahp)
        bench.control("latency", seconds=latency)
        with bench.taken(gahp) as sample:
            sample.parts["Return Line"], _ = submit_jobs(gahp, batch, jobs)
    must_be_there(bench, batch, len(jobs))
    return sample


def statuses(bench: Bench, number: int) -> Sample:
    """The statuses of many jobs, asked for by a process for the first time, and once more."""
    batch = f"condor#submit.example.edu#uppercase#{bench.round}"
    bench.control("seed", batch=batch, jobs=number, app="uppercase")
    # The stand-in makes and compresses its reply when it is first asked.
    with bench.gahp() as gahp:
        query(gahp, batch)
    with bench.gahp(counting=True) as gahp:
        ping(gahp)
        with bench.taken(gahp) as sample:
            line = query(gahp, batch)
        if line.count(b" DONE") != number:
            raise RuntimeError(f"{line.count(b' DONE')} of {number} statuses came")
        began = time.perf_counter()
        query(gahp, batch)
        sample.parts["the same again"] = time.perf_counter() - began
        sample.peak_memory = gahp.peak_memory
    return sample


def fetches(bench: Bench, number: int) -> Sample:
    """BOINC_FETCH_OUTPUT of jobs of 3 files, 50 in flight, from a project with 20 ms latency."""
    batch = f"condor#submit.example.edu#multi#{bench.round}"
    bench.control("seed", batch=batch, jobs=number, app="multi")
    home = bench.directory / "outputs"
    with bench.gahp(counting=True) as gahp:
        query(gahp, batch)
        for i in range(number):
            (home / str(i)).mkdir(parents=True)
        bench.control("latency", seconds=0.02)
        with bench.taken(gahp) as sample:
            under_way = 0
            for i in range(number):
                while under_way >= IN_FLIGHT:
                    under_way -= _fetched(gahp)
                reply = gahp.call(
                    f"BOINC_FETCH_OUTPUT {gahp.next_id()} {batch}#1.{i} {home / str(i)} "
                    "stderr.txt ALL 0"
                )
                if reply != b"S":
                    raise RuntimeError(f"BOINC_FETCH_OUTPUT was answered {reply!r}")
                under_way += 1
            while under_way:
                under_way -= _fetched(gahp)
    there = sum(1 for path in home.glob("*/out*") if path.stat().st_size)
    if there != 3 * number:
        raise RuntimeError(f"{there} of {3 * number} outputs came")
    return sample


def _fetched(gahp: Gahp) -> int:
    """Wait for results; return how many have come."""
    results = gahp.next_results()
    for result in results.values():
        if result[1] != "NULL":
            raise RuntimeError(f"a fetch failed: {result}")
    return len(results)
