"""The benchmark of ``batch submit``: a CSV file with 10,000 rows."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from typing import TYPE_CHECKING

from scripts.benchmarks.localproject import make_project, running
from scripts.benchmarks.measure import MB, Measure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scripts.benchmarks.cases import Bench
    from scripts.benchmarks.localproject import Client

#: Number of input files that the rows use in turn.
_FILES = 200


def people_submit(bench: Bench) -> Iterator[Measure]:
    """``batch submit`` of 10,000 rows with 200 small files, once more, and a dry run."""
    number = bench.some(10_000)
    rows = _rows(bench.directory / "inputs", number)
    project = bench.directory / "project"
    make_project(project)
    with running(project) as client:
        submit = ["submit", "uppercase", "--rows", str(rows), "--name", "rows"]
        for label, words in (
            (f"batch submit of {number:,} rows, {_FILES} files", submit),
            ("  the same again, which finds it done", submit),
            ("  a dry run of as many", [*submit[:-1], "other", "--dry-run"]),
        ):
            took, used = _ran(bench, client, words)
            yield Measure(label, took, "s", 10.0)
            yield Measure("    processor time", used, "s")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
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
    lines = [f"job_{i},--seed {i} --steps 1000,in{i % _FILES}.dat,2e12\n" for i in range(number)]
    rows.write_text("name,args,input:in,fpops\n" + "".join(lines))
    return rows


def _ran(bench: Bench, client: Client, words: list[str]) -> tuple[float, float]:
    """Run a command on pipes; return its seconds and its processor time."""
    settings = bench.directory / "sender.toml"
    settings.write_text(
        f'[project]\nurl = "{client.url}"\nauthenticator = "{client.authenticator}"\n'
    )
    settings.chmod(0o600)
    home = bench.directory / "home"
    home.mkdir(exist_ok=True)
    environment = {**os.environ, "HOME": str(home), "BOINC_GAHP_CONFIG": str(settings)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [*bench.command, "batch", *words],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"batch {words[0]} failed: {done.stderr[:500]}")
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
