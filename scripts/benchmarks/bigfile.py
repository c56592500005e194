"""The benchmark of a file of 1 GB: what is read of it, and whether it is sent once."""

from __future__ import annotations

import hashlib
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scripts.benchmarks.measure import MB, Measure
from scripts.benchmarks.requests import age, ping, submit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scripts.benchmarks.bench import Bench


def big_file(bench: Bench) -> Iterator[Measure]:
    """A file of 1 GB, and the same again."""
    size = bench.some(1000) * 1_000_000
    path = bench.directory / f"{bench.round}big.dat"
    block = hashlib.sha512(bench.round.encode()).digest() * 15_625  # 1 MB
    with path.open("wb") as file:
        for _ in range(size // len(block)):
            file.write(block)
    age(path)
    gigabytes = size / 1e9
    yield Measure(f"{gigabytes:g} GB: md5 alone, as a floor", _md5_time(path), "s")
    yield Measure("  one upload alone, as a floor", _upload_time(bench, path), "s")
    again = f"{gigabytes:g} GB"
    with bench.gahp() as gahp:
        ping(gahp)
        for label, batch in ((again, "big1"), ("  the same again", "big2")):
            before, used = gahp.bytes_read, gahp.processor_time
            jobs = [(f"{bench.round}{batch}#1.0", [str(path)])]
            _, took = submit(gahp, f"{bench.round}{batch}", jobs)
            yield Measure(f"{label}: result", took, "s")
            yield Measure("    processor time", gahp.processor_time - used, "s")
            yield Measure("    bytes read", (gahp.bytes_read - before) / MB, "MB")
        yield Measure("  peak memory", gahp.peak_memory / MB, "MB", 60)
    with bench.gahp() as gahp:
        ping(gahp)
        before = gahp.bytes_read
        _, took = submit(gahp, f"{bench.round}big3", [(f"{bench.round}big3#1.0", [str(path)])])
        yield Measure("  the same from a new process: result", took, "s")
        yield Measure("    bytes read", (gahp.bytes_read - before) / MB, "MB")
    path.unlink()


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
