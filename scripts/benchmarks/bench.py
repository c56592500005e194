"""What all benchmarks use: the program, the stand-in, files, and what a run took."""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from scripts.benchmarks.client import Gahp, clean_environment
from scripts.benchmarks.counts import Counts
from scripts.benchmarks.measure import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass
class Bench:
    """The parameters of a benchmark.

    Attributes:
        command: the GAHP program.
        url: the stand-in's.
        directory: for files; empty at first.
        size: by what the numbers of jobs, files and requests are multiplied.
        round: a prefix that distinguishes the batches of one program from those of another.
    """

    command: Sequence[str]
    url: str
    directory: Path
    size: float
    round: str

    @property
    def home(self) -> Path:
        """The home directory that all programs of a run share, as a user's daemons do."""
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        return home

    @property
    def record(self) -> Path:
        """The file with the record of the requests."""
        return self.directory / "record"

    def gahp(self, *, select: bool = True, counting: bool = False) -> Gahp:
        """Start the program.

        Args:
            select: select the stand-in as the project.
            counting: count its fsyncs.
        """
        counts = Counts(self.directory / "counts") if counting else None
        gahp = Gahp(self.command, self.home, counts)
        if select:
            gahp.call(f"BOINC_SELECT_PROJECT {self.url} {'0' * 32}")
        return gahp

    def some(self, number: int) -> int:
        """Return a number, multiplied by ``size``; at least 1."""
        return scaled(number, self.size)

    def control(self, action: str, **query: object) -> object:
        """Send a control request to the stand-in, and return its answer."""
        parts = urlsplit(self.url)
        target = f"http://{parts.netloc}/{action}?{urlencode(query)}"
        with urlopen(target) as answer:
            return json.load(answer)

    @contextlib.contextmanager
    def taken(self, gahp: Gahp) -> Iterator[Sample]:
        """Record and measure what a running program does; the sample is filled in at the end."""
        sample = Sample()
        self.control("record")
        syncs, processor = gahp.syncs, gahp.processor_time
        began = time.perf_counter()
        yield sample
        sample.seconds = time.perf_counter() - began
        sample.processor = gahp.processor_time - processor
        sample.peak_memory = gahp.peak_memory
        sample.syncs = None if gahp.syncs is None else gahp.syncs - (syncs or 0)
        sample.rpcs = self.recorded(self.record)

    def recorded(self, path: Path) -> dict[str, int]:
        """End the record of requests and write it to a file; return their numbers by RPC."""
        rpcs = self.control("recorded", path=path)
        assert isinstance(rpcs, dict)
        return rpcs

    def settings(
        self, url: str = "", authenticator: str = "0" * 32, *, more: str = "", htcondor: str = ""
    ) -> Path:
        """Write settings where the programs of a run find them.

        Args:
            url: the project's; the stand-in's by default.
            authenticator: the account's.
            more: lines for the section ``[project]``.
            htcondor: lines for the section ``[htcondor]``.
        """
        path = self.home / ".config" / "boinc_gahp" / "boinc_gahp.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'[project]\nurl = "{url or self.url}"\nauthenticator = "{authenticator}"\n{more}\n'
            f"[htcondor]\n{htcondor}\n"
        )
        path.chmod(0o600)
        return path

    def batch(self, words: Sequence[str]) -> tuple[Sample, str]:
        """Run ``boinc_gahp batch`` on pipes; return what it took, and what it printed.

        Raises:
            RuntimeError: it failed.
        """
        counts = Counts(self.directory / "counts")
        environment = {**clean_environment(self.home), **counts.environment}
        before, began = _children(), time.perf_counter()
        done = subprocess.run(
            [*self.command, "batch", *words],
            env=environment,
            cwd=self.directory,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        took = time.perf_counter() - began
        if done.returncode:
            raise RuntimeError(f"batch {words[0]} failed: {done.stderr[:500]}")
        sample = Sample(took, _children() - before, counts.peak_memory, {}, counts.syncs)
        return sample, done.stdout


@contextlib.contextmanager
def standin() -> Iterator[str]:
    """Start a stand-in project; return its URL."""
    with subprocess.Popen(
        [sys.executable, "-m", "scripts.benchmarks.standin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.communicate()


def scaled(number: int, size: float) -> int:
    """Return a number, multiplied by ``size``; at least 1."""
    return max(1, round(number * size))


def _children() -> float:
    """Return the processor time of the processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
