"""The benchmarks of HTCondor 10 and later: jobs with BLAH_* commands, and a ledger full of them."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from boinc_gahp.gahp.lines import join
from scripts.benchmarks.measure import MB, Measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scripts.benchmarks.bench import Bench
    from scripts.benchmarks.client import Gahp

#: Concurrent requests of a gridmanager (``gridmanager-batch.rst``, "Concurrency").
IN_FLIGHT = 50

#: Largest number of statuses that it asks for per second (conf/: GRIDMANAGER_JOB_PROBE_RATE_BATCH).
PROBE_RATE = 100


def batch_submit(bench: Bench) -> Iterator[Measure]:
    """1,000 jobs of HTCondor 10, 50 under way at a time."""
    number = bench.some(1000)
    settle_in(bench)
    with bench.gahp(select=False) as gahp:
        ask(gahp, "BLAH_PING", "boinc")
        used = gahp.processor_time
        began = time.perf_counter()
        _, lines = at_a_time(gahp, (("BLAH_JOB_SUBMIT", _ad(bench, i)) for i in range(number)))
        took = time.perf_counter() - began
        yield Measure(f"{number:,} BLAH_JOB_SUBMITs, {IN_FLIGHT} at a time", took, "s", 10)
        yield Measure("  Return Line, worst", max(lines), "s", 0.05)
        yield Measure("  Return Line, median", statistics.median(lines), "s")
        yield Measure("    processor time", gahp.processor_time - used, "s")
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB")


def batch_status(bench: Bench) -> Iterator[Measure]:
    """Statuses where the ledger has 20,000 jobs, which are on the project."""
    number = bench.some(20_000)
    settle_in(bench)
    bench.control("status", word="IN_PROGRESS")
    with bench.gahp(select=False) as gahp:
        ask(gahp, "BLAH_PING", "boinc")
        requests = (("BLAH_JOB_SUBMIT", _ad(bench, i)) for i in range(number))
        results, _ = at_a_time(gahp, requests)
        jobs = [result[3] for result in results]
        _until_running(gahp, jobs)
        times = [_timed(gahp, jobs[i * 7919 % number]) for i in range(bench.some(2000))]
        yield Measure(
            f"{number:,} jobs in the ledger: BLAH_JOB_STATUS, worst", max(times), "s", 0.02
        )
        yield Measure("  BLAH_JOB_STATUS, median", statistics.median(times), "s")
        used = gahp.processor_time
        began = time.perf_counter()
        at_a_time(gahp, (("BLAH_JOB_STATUS", job) for job in jobs))
        took = time.perf_counter() - began
        yield Measure(f"  all of them, {IN_FLIGHT} at a time", number / took, "1/s")
        yield Measure("    processor time", gahp.processor_time - used, "s")
        share = _share(gahp, jobs, bench.some(3000))
        yield Measure(f"  {PROBE_RATE} a second: share of a processor", share, "%", 15)
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB", 200)
    times = []
    for _ in range(20 if bench.size >= 1 else 5):
        with bench.gahp(select=False) as gahp:
            times.append(gahp.banner_after)
    yield Measure("  spawn to banner, median", statistics.median(times), "s", 0.15)
    with bench.gahp(select=False) as gahp:
        times = [_timed(gahp, jobs[i % number]) for i in range(20)]
        yield Measure("  a new daemon's first BLAH_JOB_STATUS", times[0], "s")
        yield Measure("  the 19 after it, worst", max(times[1:]), "s")


def settle_in(bench: Bench, htcondor: str = "", project: str = "") -> None:
    """Write the settings and the input file of the user whose home the programs share."""
    bench.settings(more=project, htcondor=htcondor)
    (bench.home / "in").write_text("one input for all\n")


def _ad(bench: Bench, number: int) -> str:
    """Return a submit ad as HTCondor makes it (``gridmanager-batch.rst``, "The submit ad")."""
    home = bench.directory / "home"
    return (
        f'[ In = "/dev/null"; Cmd = "{home}/uppercase"; Err = "err.{number}"; Iwd = "{home}"; '
        f'Out = "out.{number}"; Queue = "uppercase"; gridtype = "boinc"; Arguments = "-n 5"; '
        'Environment = ""; GridResource = "batch boinc"; StageCmd = false; '
        f'JobDirectory = "home_bl_127.0.0.1_9618_vm_1.{number}_1795261016"; TransferInput = "in" ]'
    )


def at_a_time(
    gahp: Gahp, requests: Iterable[tuple[str, str]]
) -> tuple[list[list[str]], list[float]]:
    """Make requests, 50 under way; return their results' words, and seconds to Return Lines."""
    order: list[str] = []
    lines: list[float] = []
    found: dict[str, list[str]] = {}
    for command, argument in requests:
        while len(order) - len(found) >= IN_FLIGHT:
            found |= gahp.next_results()
        order.append(gahp.next_id())
        line = join([command, order[-1], argument])
        began = time.perf_counter()
        if gahp.call(line) != b"S":
            raise RuntimeError(f"{command} was not accepted")
        lines.append(time.perf_counter() - began)
    while len(found) < len(order):
        found |= gahp.next_results()
    results = [found[each] for each in order]
    for result in results:
        if result[1:3] != ["0", "NULL"]:
            raise RuntimeError(f"a request failed: {result}")
    return results, lines


def ask(gahp: Gahp, command: str, argument: str) -> list[str]:
    """Make a request; return its result's words."""
    ((result,), _) = at_a_time(gahp, [(command, argument)])
    return result


def _timed(gahp: Gahp, job: str) -> float:
    """Return the seconds from a BLAH_JOB_STATUS to its Result Line."""
    began = time.perf_counter()
    ask(gahp, "BLAH_JOB_STATUS", job)
    return time.perf_counter() - began


def _share(gahp: Gahp, jobs: list[str], number: int) -> float:
    """Return the percentage of a processor that evenly spaced BLAH_JOB_STATUSes take."""
    used = gahp.processor_time
    began = time.perf_counter()
    for i in range(number):
        time.sleep(max(0.0, began + i / PROBE_RATE - time.perf_counter()))
        _timed(gahp, jobs[i * 7919 % len(jobs)])
    return 100 * (gahp.processor_time - used) / (time.perf_counter() - began)


def _until_running(gahp: Gahp, jobs: list[str]) -> None:
    """Wait until all jobs are on the project, and run there."""
    deadline = time.monotonic() + 300
    left = jobs
    while left:
        results, _ = at_a_time(gahp, [("BLAH_JOB_STATUS", job) for job in left])
        left = [job for job, result in zip(left, results, strict=True) if result[3] != "2"]
        if time.monotonic() > deadline:
            raise RuntimeError(f"{len(left)} jobs are not on the project after 300 s")
        if left:
            time.sleep(1)
