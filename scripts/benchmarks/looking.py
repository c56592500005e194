"""The benchmarks of ``batch list`` and ``batch show``: many batches, and many jobs."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from typing import TYPE_CHECKING

from scripts.benchmarks.localproject import make_project, running
from scripts.benchmarks.measure import MB, Measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from scripts.benchmarks.cases import Bench
    from scripts.benchmarks.localproject import Client


def people_list(bench: Bench) -> Iterator[Measure]:
    """``batch list`` of an account with 2,000 batches."""
    number = bench.some(2000)
    directory = bench.directory / "list"
    _batches(directory, number)
    with running(directory) as client:
        # Measure the project's part separately from the command's.
        answer, reply = client.timed("query_batches", "")
        _must_be(number, reply.count("<batch>"))
        for label, words in (
            (f"batch list of {number:,} batches", ["list"]),
            ("  as JSON", ["list", "--json"]),
        ):
            took, used, out = _ran(bench, client, words)
            _must_be(number, out.count("batch_"))
            yield Measure(label, took, "s", 1.0)
            yield Measure("    processor time", used, "s")
        took, _, _ = _ran(bench, client, ["list", "--help"])
        yield Measure("  its help, for the start of Python", took, "s")
        yield Measure("  the project's answer", answer, "s")


def people_show(bench: Bench) -> Iterator[Measure]:
    """``batch show`` of 10,000 jobs, and the memory that it needs."""
    number = bench.some(10_000)
    directory = bench.directory / "show"
    make_project(directory)
    file = "<input_file><mode>local_staged</mode><source>input.dat</source></input_file>"
    jobs = "".join(f"<job><name>job_{i}</name>{file}</job>" for i in range(number))
    batch = f"<batch><batch_name>many</batch_name><app_name>uppercase</app_name>{jobs}</batch>"
    with running(directory) as client:
        client.rpc("submit_batch", batch)
        answer, _ = client.timed(
            "query_batch", "<batch_name>many</batch_name><get_job_details>1</get_job_details>"
        )
        took, used, out = _ran(bench, client, ["show", "many"])
        _must_be(number, out.count(" job_"))
        yield Measure(f"batch show of {number:,} jobs", took, "s", 5.0)
        yield Measure("    processor time", used, "s")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        yield Measure("  peak memory, of the command or the project", peak / MB, "MB", 150)
        yield Measure("  the project's answer", answer, "s")


def _ran(bench: Bench, client: Client, words: Sequence[str]) -> tuple[float, float, str]:
    """Run a command on a pipe; return its seconds, its processor time, and its output."""
    settings = bench.directory / "people.toml"
    settings.write_text(
        f'[project]\nurl = "{client.url}"\nauthenticator = "{client.authenticator}"\n'
    )
    settings.chmod(0o600)
    home = bench.directory / "home"
    home.mkdir(exist_ok=True)
    environment = {**os.environ, "HOME": str(home), "BOINC_GAHP_CONFIG": str(settings)}
    before, began = _children(), time.perf_counter()
    done = subprocess.run(
        [*bench.command, "batch", *words],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    took = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"batch {words[0]} failed: {done.stderr[:500]}")
    return took, _children() - before, done.stdout


def _children() -> float:
    """Return the processor time of the processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _batches(directory: Path, number: int) -> None:
    """Make a project with so many batches, a third of them over, with a job each."""
    project = make_project(directory, close=False)
    try:
        now = int(time.time())
        with project.core.db.write() as connection:
            connection.execute(
                "WITH RECURSIVE count (n) AS "
                "(SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < ?) "
                "INSERT INTO batch (id, user_id, create_time, name, name_key, app_id, state, "
                "njobs) SELECT n, (SELECT id FROM user WHERE name = 'submitter'), ? - n, "
                "'batch_' || n, 'batch_' || n, 1, n % 3, 1 FROM count",
                (number, now),
            )
    finally:
        project.close()


def _must_be(expected: int, found: int) -> None:
    if found != expected:
        raise RuntimeError(f"{found} of {expected} batches or jobs are there")
