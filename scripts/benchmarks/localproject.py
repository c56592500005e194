"""The benchmarks of the local project: web RPCs, transitioner, volunteers, uploads, memory."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

from urllib3 import encode_multipart_formdata

from boinc_gahp.localproject.backend.create_work import NewJob, create_work
from boinc_gahp.localproject.backend.transitioner import transition_pass
from boinc_gahp.localproject.project import LocalProject
from scripts.benchmarks import people
from scripts.benchmarks.measure import MB, Measure

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from scripts.benchmarks.bench import Bench

#: Runs a project until its standard input ends: its directory, its volunteers, "stock" for PHP's
#: limits as they are shipped.
_SERVE = """
import pathlib, sys
from boinc_gahp.localproject.core import STOCK, Php
from boinc_gahp.localproject.project import LocalProject
directory, hosts, limits = sys.argv[1:]
php = STOCK if limits == "stock" else Php()
with LocalProject(pathlib.Path(directory), hosts=int(hosts), php=php) as p:
    print(p.url, p.authenticator, flush=True)
    sys.stdin.read()
"""
_FILE = "input.dat"
_VOLUNTEERS = 4
#: Seconds between two looks at a batch that is not done.
_LOOK = 0.1
_DONE_TIMEOUT = 300.0
#: Input files that many jobs use in turn.
_FILES = 200
_TICK = os.sysconf("SC_CLK_TCK")


class Client:
    """A project in another process, and its submitter."""

    def __init__(self, process: subprocess.Popen[str], url: str, authenticator: str) -> None:
        self._process = process
        self.url = url
        self.authenticator = authenticator

    def rpc(self, name: str, inner: str) -> str:
        """Send an RPC that must succeed; return the reply."""
        document = f"<{name}><authenticator>{self.authenticator}</authenticator>{inner}</{name}>"
        body, kind = encode_multipart_formdata([("request", document)])
        request = Request(f"{self.url}submit_rpc_handler.php", body, {"Content-Type": kind})
        with urlopen(request) as answer:
            reply: str = answer.read().decode()
        if "<error>" in reply or f"</{name}>" not in reply:
            raise RuntimeError(f"{name} failed: {reply[:500]}")
        return reply

    def timed(self, name: str, inner: str) -> tuple[float, str]:
        """Send an RPC; return the seconds it took, and the reply."""
        began = time.perf_counter()
        reply = self.rpc(name, inner)
        return time.perf_counter() - began, reply

    @property
    def processor_time(self) -> float:
        """Seconds of processor time that the process has used so far, user and system."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    @property
    def apps_processor_time(self) -> float:
        """Seconds of processor time of the apps that have ended, user and system."""
        status = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
        return sum(map(int, status.rpartition(")")[2].split()[13:15])) / _TICK

    @property
    def peak_memory(self) -> int:
        """The peak memory of the process, in bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@contextlib.contextmanager
def running(directory: Path, hosts: int = 0, limits: str = "recommended") -> Iterator[Client]:
    """Run a project in another process until the end of the block.

    ``limits``: PHP's, ``recommended`` or ``stock``.
    """
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(directory), str(hosts), limits],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            line = process.stdout.readline().split()
            if len(line) != 2:
                raise RuntimeError("the project did not start")
            yield Client(process, *line)
        finally:
            process.communicate()


def local_submit(bench: Bench) -> Iterator[Measure]:
    """10,000 jobs submitted in one request, and their statuses."""
    number = bench.some(10_000)
    directory = bench.directory / "submit"
    make_project(directory)
    with running(directory) as client:
        took, _ = client.timed("submit_batch", _batch("ten", number))
        yield Measure(f"local project: submit of {number:,} jobs", took, "s", 3.0)
        took, reply = client.timed("query_batch2", "<batch_name>ten</batch_name>")
        _must_be(number, reply.count("<job>"))
        yield Measure("  their statuses, while they are made ready", took, "s", 1.0)
        yield Measure("  peak memory", client.peak_memory / MB, "MB", 300)


def local_transitions(bench: Bench) -> Iterator[Measure]:
    """A transitioner pass over 10,000 workunits."""
    number = bench.some(10_000)
    project = make_project(bench.directory / "transitions")
    core = project.core
    try:
        create_work(
            core, "uppercase", [NewJob(name=f"job_{i}", files=(_FILE,)) for i in range(number)]
        )
        began = time.perf_counter()
        done = 0
        while count := transition_pass(core, time.time()):
            done += count
        took = time.perf_counter() - began
        _must_be(number, done)
        yield Measure(f"local project: transitioner, {number:,} workunits", took, "s", 5.0)
    finally:
        project.close()


def local_queries(bench: Bench) -> Iterator[Measure]:
    """Queries of 100,000 finished jobs."""
    number = bench.some(100_000)
    directory = bench.directory / "queries"
    _finished_jobs(make_project(directory, close=False), number)
    with running(directory) as client:
        name = "<batch_name>done</batch_name>"
        took, reply = client.timed("query_batch2", name)
        _must_be(number, reply.count("DONE"))
        yield Measure(f"local project: statuses of {number:,} done jobs", took, "s", 3.0)
        took, _ = client.timed("query_batch2", f"{name}<min_mod_time>4e9</min_mod_time>")
        yield Measure("  what has changed since, nothing", took, "s", 0.2)
        took, _ = client.timed("query_batches", "")
        yield Measure("  query_batches", took, "s", 0.5)
        took, reply = client.timed("query_batch", f"{name}<get_job_details>1</get_job_details>")
        _must_be(number, reply.count("<status>done"))
        yield Measure("  query_batch with details", took, "s", 5.0)
        took, _ = client.timed("ping", " ")
        yield Measure("  ping", took, "s")
        yield Measure("  peak memory", client.peak_memory / MB, "MB", 300)


def local_uploads(bench: Bench) -> Iterator[Measure]:
    """``batch submit`` of 10,000 rows with a new file each, 20 files a POST, as PHP is shipped."""
    number = bench.some(10_000)
    rows = people.rows_with_files(bench, number, number)
    with running(bench.directory / "uploads", limits="stock") as client:
        bench.settings(client.url, client.authenticator)
        before = client.processor_time
        sample, _ = bench.batch(["submit", "uppercase", "--rows", str(rows), "--name", "rows"])
        reply = client.rpc("query_batch2", "<batch_name>rows</batch_name>")
        _must_be(number, reply.count("<job>"))
        yield Measure(f"local project: {number:,} new files, submitted", sample.seconds, "s", 8.0)
        yield Measure("  processor time, of the project", client.processor_time - before, "s")
        yield Measure("  processor time, of batch submit", sample.processor, "s")
        yield Measure("  peak memory, of the project", client.peak_memory / MB, "MB", 300)


def local_jobs(bench: Bench) -> Iterator[Measure]:
    """1,000 jobs of 0.01 s on 4 volunteers, from the submit until all outputs are there."""
    number = bench.some(1000)
    directory = bench.directory / "jobs"
    make_project(directory)
    with running(directory, _VOLUNTEERS, "stock") as client:
        before, began = client.processor_time, time.perf_counter()
        client.rpc("submit_batch", _batch("short", number, "--sleep 0.01"))
        _wait_until_done(client)
        took = time.perf_counter() - began
        label = f"local project: {number:,} jobs of 0.01 s, {_VOLUNTEERS} volunteers"
        yield Measure(label, took, "s", 15.0)
        yield Measure("  processor time, of the project", client.processor_time - before, "s")
        yield Measure("  processor time, of the jobs", client.apps_processor_time, "s")
    outputs = sum(path.name != ".md5" for path in directory.glob("upload/[!.]*/*"))
    _must_be(number, outputs)


def local_parts(bench: Bench) -> Iterator[Measure]:
    """``batch submit --split`` of 100,000 rows: as many batches as PHP's limits need."""
    number = bench.some(100_000)
    rows = people.rows_with_files(bench, number, min(_FILES, number))
    with running(bench.directory / "parts", limits="stock") as client:
        bench.settings(client.url, client.authenticator)
        submit = ["submit", "uppercase", "--rows", str(rows), "--name", "rows", "--split"]
        sample, _ = bench.batch(submit)
        made = re.findall("<njobs>([0-9]+)</njobs>", client.rpc("query_batches", ""))
        _must_be(number, sum(map(int, made)))
        label = f"local project: {number:,} jobs in {len(made)} batches"
        yield Measure(label, sample.seconds, "s")
        yield Measure("  processor time, of the project", client.processor_time, "s")
        yield Measure("  processor time, of batch submit", sample.processor, "s")
        yield Measure("  peak memory, of the project", client.peak_memory / MB, "MB", 300)
        yield Measure("  peak memory, of batch submit", sample.peak_memory / MB, "MB")


def _wait_until_done(client: Client) -> None:
    """Wait until all jobs of the only batch are done."""
    deadline = time.monotonic() + _DONE_TIMEOUT
    while "<fraction_done>1</fraction_done>" not in (reply := client.rpc("query_batches", "")):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all jobs are done after {_DONE_TIMEOUT:g} s: {reply[:500]}")
        time.sleep(_LOOK)


def make_project(directory: Path, *, close: bool = True) -> LocalProject:
    """Make a project with one staged file; it is not started."""
    project = LocalProject(directory, hosts=0)
    project.core.download.add_bytes(_FILE, b"input\n")
    if close:
        project.close()
    return project


def _batch(name: str, jobs: int, arguments: str = "-n {}") -> str:
    file = f"<input_file><mode>local_staged</mode><source>{_FILE}</source></input_file>"
    listed = "".join(
        f"<job><name>{name}_job_{i}</name><command_line>{arguments.format(i)}</command_line>"
        f"{file}</job>"
        for i in range(jobs)
    )
    return f"<batch><batch_name>{name}</batch_name><app_name>uppercase</app_name>{listed}</batch>"


def _finished_jobs(project: LocalProject, number: int) -> None:
    """Fill a project with a batch of that many finished jobs, by copying one."""
    core = project.core
    try:
        create_work(core, "uppercase", [NewJob(name="job_0", files=(_FILE,))])
        transition_pass(core, time.time())
        with core.db.write() as connection:
            connection.execute(
                "INSERT INTO batch (id, user_id, create_time, name, name_key, app_id, state) "
                "SELECT 1, id, 1, 'done', 'done', 1, 1 FROM user WHERE name = 'submitter'"
            )
            connection.execute(
                "UPDATE workunit SET batch = 1, canonical_resultid = id, assimilate_state = 2, "
                "transition_time = 4e9"
            )
            connection.execute(
                "UPDATE result SET batch = 1, server_state = 5, outcome = 1, validate_state = 1"
            )
            new = {"id": "n", "name": "'job_' || n", "name_key": "'job_' || n"}
            _copy(connection, "workunit", {**new, "canonical_resultid": "n"}, number)
            _copy(connection, "result", {**new, "workunitid": "n"}, number)
    finally:
        project.close()


def _copy(connection: sqlite3.Connection, table: str, changes: dict[str, str], number: int) -> None:
    columns = [row["name"] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changes.get(column, f"t.{column}") for column in columns)
    connection.execute(
        "WITH RECURSIVE count (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM count WHERE n < ?) "
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM count, {table} t "
        "WHERE t.id = 1",
        (number,),
    )


def _must_be(expected: int, found: int) -> None:
    if found != expected:
        raise RuntimeError(f"{found} of {expected} jobs are there")
