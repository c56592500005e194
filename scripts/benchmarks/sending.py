"""The benchmark of ``batch submit``: a CSV file with 10,000 rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.benchmarks.localproject import make_project, running
from scripts.benchmarks.measure import MB, Measure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scripts.benchmarks.bench import Bench

#: Number of input files that the rows use in turn.
_FILES = 200


def people_submit(bench: Bench) -> Iterator[Measure]:
    """``batch submit`` of 10,000 rows with 200 small files, once more, and a dry run.

    Each row has its own number of operations, hence each job its own template: the request is
    larger than a stock PHP accepts, so the project and the settings allow more.
    """
    number = bench.some(10_000)
    rows = _rows(bench.directory / "inputs", number)
    project = bench.directory / "project"
    make_project(project)
    peak = 0.0
    with running(project) as client:
        bench.settings(client.url, client.authenticator, more="max_post_bytes = 100_000_000")
        submit = ["submit", "uppercase", "--rows", str(rows), "--name", "rows"]
        for label, words in (
            (f"batch submit of {number:,} rows, {_FILES} files", submit),
            ("  the same again, which finds it done", submit),
            ("  a dry run of as many", [*submit[:-1], "other", "--dry-run"]),
        ):
            ran, _ = bench.batch(words)
            peak = max(peak, ran.peak_memory)
            yield Measure(label, ran.seconds, "s", 10.0)
            yield Measure("    processor time", ran.processor, "s")
        reply = client.rpc("query_batch2", "<batch_name>rows</batch_name>")
        if reply.count("<job>") != number:
            raise RuntimeError(f"{reply.count('<job>')} of {number} jobs are on the project")
        yield Measure("  peak memory", peak / MB, "MB", 200)


def _rows(directory: Path, number: int) -> Path:
    """Write the files, and a CSV file that uses them; return the latter."""
    directory.mkdir()
    for i in range(_FILES):
        (directory / f"in{i}.dat").write_text(f"input {i}\n" * 100)
    rows = directory / "rows.csv"
    lines = [f"--seed {i} --steps 1000,in{i % _FILES}.dat,2e12\n" for i in range(number)]
    rows.write_text("args,input:in,fpops\n" + "".join(lines))
    return rows
