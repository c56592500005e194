"""The benchmark of jobs that bring their own program and run in containers."""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING

from scripts.benchmarks.batch import ask, at_a_time, settle_in
from scripts.benchmarks.measure import MB, Measure
from scripts.benchmarks.project import CONTAINERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripts.benchmarks.bench import Bench
    from scripts.benchmarks.floor import Recorded

#: The daemon's pause before it sends a batch, short: what counts is the work.
_TIMERS = "send_after = 0.2"
#: The most seconds until all jobs are on the project.
_PATIENCE = 300.0


def container_jobs(bench: Bench) -> Iterator[Measure]:
    """1,000 jobs that share their program and differ in their arguments, until they are sent.

    Each has its standard output and error, and an output file.
    """
    number = bench.some(1000)
    settle_in(bench, _TIMERS, project=f'container_app = "{CONTAINERS}"')
    bench.control("status", word="IN_PROGRESS")
    (bench.home / "fit.py").write_text("#!/usr/bin/python3\nprint('a program of one\\'s own')\n")
    with bench.gahp(select=False, counting=True) as gahp:
        ask(gahp, "BLAH_PING", "boinc")
        with bench.taken(gahp) as sample:
            began = time.perf_counter()
            requests = (("BLAH_JOB_SUBMIT", _ad(bench, i)) for i in range(number))
            results, _ = at_a_time(gahp, requests)
            answered = time.perf_counter() - began
            _until_sent(bench, [result[3] for result in results], number)
    sent = _recorded(bench)
    batches = [each.length for each in sent if each.rpc == "submit_batch"]
    files = [each.length for each in sent if each.rpc == "upload_files"]
    label = f"{number:,} container jobs of one program, on the project"
    yield Measure(label, sample.seconds, "s", 3.0)
    yield Measure("  all BLAH_JOB_SUBMITs answered", answered, "s")
    yield Measure("    processor time", sample.processor, "s")
    yield Measure("  RPCs", len(sent), "RPCs")
    yield Measure("  submit_batch: bytes for each job", sum(batches) / number, "B", 2000)
    yield Measure("    the largest request", max(batches) / MB, "MB", 7.5)
    yield Measure("  upload_files: all of it", sum(files) / MB, "MB")
    yield Measure("  peak memory", sample.peak_memory / MB, "MB")


def _ad(bench: Bench, number: int) -> str:
    """Return a submit ad as HTCondor makes it (``gridmanager-batch.rst``, "Jobs in containers")."""
    return (
        f'[ In = "/dev/null"; Cmd = "{bench.home}/fit.py"; Err = "err.{number}"; '
        f'Iwd = "{bench.home}"; Out = "out.{number}"; gridtype = "boinc"; StageCmd = true; '
        f'Arguments = "--title \'two words\' --seed {number}"; Environment = "A=1"; '
        'BoincImage = "docker://python:3.12-slim"; GridResource = "batch boinc"; '
        'TransferOutput = "result.json"; '
        f'TransferOutputRemaps = "result.json=result.{number}.json"; '
        f'JobDirectory = "home_bl_127.0.0.1_9618_vm_1.{number}_1795261016" ]'
    )


def _until_sent(bench: Bench, jobs: list[str], number: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while bench.control("jobs", app=CONTAINERS) != number:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all of {len(jobs)} jobs are on the project")
        time.sleep(0.02)


def _recorded(bench: Bench) -> list[Recorded]:
    with bench.record.open("rb") as file:
        found: list[Recorded] = pickle.load(file)
        return found
