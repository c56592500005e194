"""The benchmarks of ``batch list`` and ``batch show``: many batches, and many jobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scripts.benchmarks.localproject import make_project, running
from scripts.benchmarks.measure import MB, Measure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scripts.benchmarks.bench import Bench


def people_list(bench: Bench) -> Iterator[Measure]:
    """``batch list`` of an account with 2,000 batches."""
    number = bench.some(2000)
    directory = bench.directory / "list"
    _batches(directory, number)
    with running(directory) as client:
        bench.settings(client.url, client.authenticator)
        # Measure the project's part separately from the command's.
        answer, reply = client.timed("query_batches", "")
        _must_be(number, reply.count("<batch>"))
        for label, words in (
            (f"batch list of {number:,} batches", ["list"]),
            ("  as JSON", ["list", "--json"]),
        ):
            ran, out = bench.batch(words)
            _must_be(number, out.count("batch_"))
            yield Measure(label, ran.seconds, "s", 1.0)
            yield Measure("    processor time", ran.processor, "s")
        ran, _ = bench.batch(["list", "--help"])
        yield Measure("  its help, for the start of Python", ran.seconds, "s")
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
        bench.settings(client.url, client.authenticator)
        client.rpc("submit_batch", batch)
        answer, _ = client.timed(
            "query_batch", "<batch_name>many</batch_name><get_job_details>1</get_job_details>"
        )
        ran, out = bench.batch(["show", "many"])
        _must_be(number, out.count(" job_"))
        yield Measure(f"batch show of {number:,} jobs", ran.seconds, "s", 5.0)
        yield Measure("    processor time", ran.processor, "s")
        yield Measure("  peak memory", ran.peak_memory / MB, "MB", 150)
        yield Measure("  the project's answer", answer, "s")


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
