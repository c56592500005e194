"""The cases of ``boinc_gahp batch``, each with its floor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.benchmarks.requests import must_be_there, new_file

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.benchmarks.bench import Bench
    from scripts.benchmarks.measure import Sample

#: Input files that the rows use in turn.
_FILES = 200


def people_rows(bench: Bench, number: int) -> Sample:
    """``batch submit`` of so many rows with 200 files."""
    return _submit(bench, number, min(_FILES, number))


def people_files(bench: Bench, number: int) -> Sample:
    """``batch submit`` of so many rows, each with a small file of its own."""
    return _submit(bench, number, number)


def people_fetches(bench: Bench, number: int) -> Sample:
    """``batch fetch`` of so many small jobs."""
    bench.settings()
    bench.control("seed", batch="done", jobs=number, app="uppercase")
    bench.control("record")
    sample, _ = bench.batch(["fetch", "done", "outputs"])
    sample.rpcs = bench.recorded(bench.record)
    there = sum(1 for path in bench.directory.glob("outputs/*/out0") if path.stat().st_size)
    if there != number:
        raise RuntimeError(f"{there} of {number} outputs came")
    return sample


def _submit(bench: Bench, number: int, files: int) -> Sample:
    bench.settings()
    rows = rows_with_files(bench, number, files)
    bench.control("record")
    sample, _ = bench.batch(["submit", "uppercase", "--rows", str(rows), "--name", "rows"])
    sample.rpcs = bench.recorded(bench.record)
    must_be_there(bench, "rows", number)
    return sample


def rows_with_files(bench: Bench, number: int, files: int) -> Path:
    """Write files, and a CSV file that uses them in turn; return the latter."""
    for i in range(files):
        new_file(bench, f"in{i}.dat", f"{bench.round} input {i}\n".encode() * 50)
    rows = bench.directory / "rows.csv"
    lines = [f"job_{i},--seed {i} --steps 1000,in{i % files}.dat\n" for i in range(number)]
    rows.write_text("name,args,input:in\n" + "".join(lines))
    return rows
