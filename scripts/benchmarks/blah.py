"""The cases of HTCondor 10 and later: ``BLAH_*`` requests, each with its floor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scripts.benchmarks.batch import ask, at_a_time, settle_in

if TYPE_CHECKING:
    from scripts.benchmarks.bench import Bench
    from scripts.benchmarks.client import Gahp
    from scripts.benchmarks.measure import Sample

#: The daemon's own pauses, short: what counts is the work between them.
_TIMERS = "send_after = 0.5\npoll_shortest = 0.5\npoll_longest = 1.0"
#: Jobs that are asked about at a time, and the seconds until the next question if none of them is
#: done: at most 100 in a second, as many as a gridmanager asks about (see ``batch.PROBE_RATE``).
_ASKED = 10
_PAUSE = 0.1


def blah_fetches(bench: Bench, number: int) -> Sample:
    """The outputs of jobs, 3 each, from when the project has them until HTCondor is told.

    The jobs are on the project, and are done there all at once.
    """
    settle_in(bench, _TIMERS)
    bench.control("status", word="IN_PROGRESS")
    directory = bench.home / "jobs"
    outputs = "out0,out1,out2"
    with bench.gahp(select=False, counting=True) as gahp:
        ask(gahp, "BLAH_PING", "boinc")
        jobs = _submit(gahp, [_ad(bench, i, "multi", outputs) for i in range(number)])
        _until(gahp, jobs, "2")
        with bench.taken(gahp) as sample:
            bench.control("status", word="DONE")
            _until(gahp, jobs, "4")
    there = sum(1 for path in directory.glob("*/out[012]") if path.stat().st_size)
    if there != 3 * number:
        raise RuntimeError(f"{there} of {3 * number} outputs came")
    return sample


def blah_cluster(bench: Bench, number: int) -> Sample:
    """Jobs of one cluster, with an output each, from the first submit until all are done.

    They are done on the project as soon as they are there.
    """
    settle_in(bench, _TIMERS)
    with bench.gahp(select=False, counting=True) as gahp:
        ask(gahp, "BLAH_PING", "boinc")
        ads = [_ad(bench, i, "uppercase", "out0") for i in range(number)]
        with bench.taken(gahp) as sample:
            began = time.perf_counter()
            jobs = _submit(gahp, ads)
            sample.parts["all BLAH_JOB_SUBMITs answered"] = time.perf_counter() - began
            _until(gahp, jobs, "4")
    return sample


def _ad(bench: Bench, number: int, app: str, outputs: str) -> str:
    """Return a submit ad as HTCondor makes it (``gridmanager-batch.rst``, "The submit ad")."""
    directory = bench.home / "jobs" / str(number)
    directory.mkdir(parents=True)
    return (
        f'[ In = "/dev/null"; Cmd = "{directory}/{app}"; Err = "err"; Iwd = "{directory}"; '
        f'Out = "/dev/null"; Queue = "{app}"; gridtype = "boinc"; Arguments = "-n {number}"; '
        'Environment = ""; GridResource = "batch boinc"; StageCmd = false; '
        f'TransferOutput = "{outputs}"; TransferInput = "{bench.home}/in"; '
        f'JobDirectory = "home_bl_127.0.0.1_9618_vm_1.{number}_1795261016" ]'
    )


def _submit(gahp: Gahp, ads: list[str]) -> list[str]:
    results, _ = at_a_time(gahp, (("BLAH_JOB_SUBMIT", ad) for ad in ads))
    return [result[3] for result in results]


def _until(gahp: Gahp, jobs: list[str], status: str) -> None:
    """Ask about the oldest jobs, some at a time, until all have a status."""
    deadline = time.monotonic() + 600
    left = jobs
    while left:
        asked, later = left[:_ASKED], left[_ASKED:]
        results, _ = at_a_time(gahp, [("BLAH_JOB_STATUS", job) for job in asked])
        for job, result in zip(asked, results, strict=True):
            if result[3] == "5":
                raise RuntimeError(f"job {job} is held: {result[4][:500]}")
        waiting = [job for job, found in zip(asked, results, strict=True) if found[3] != status]
        if len(waiting) == len(asked):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(left)} jobs do not have the status {status} in 600 s")
            time.sleep(_PAUSE)
        left = waiting + later
