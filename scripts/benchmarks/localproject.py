"""The benchmarks of the local project: its web RPCs, its transitioner, and its memory."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from boinc_gahp.localproject import LocalProject, PhpLimits, Quirks
from boinc_gahp.localproject.backend.create_work import NewJob, create_work
from boinc_gahp.localproject.backend.transitioner import transition_pass
from scripts.benchmarks.measure import MB, Measure

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from scripts.benchmarks.bench import Bench

#: Runs a project without volunteers until its standard input ends.
_SERVE = """
import pathlib, sys
from boinc_gahp.localproject import LocalProject, PhpLimits, Quirks
with LocalProject(pathlib.Path(sys.argv[1]), hosts=0, quirks=Quirks(limits=PhpLimits.none())) as p:
    print(p.url, p.authenticator, flush=True)
    sys.stdin.read()
"""
_FILE = "input.dat"


class Client:
    """A project in another process, and its submitter."""

    def __init__(self, process: subprocess.Popen[str], url: str, authenticator: str) -> None:
        self._process = process
        self.url = url
        self.authenticator = authenticator

    def rpc(self, name: str, inner: str) -> str:
        """Send an RPC that must succeed; return the reply."""
        document = f"<{name}><authenticator>{self.authenticator}</authenticator>{inner}</{name}>"
        request = Request(
            f"{self.url}submit_rpc_handler.php", urlencode({"request": document}).encode()
        )
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
    def peak_memory(self) -> int:
        """The peak memory of the process, in bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Client]:
    """Run a project in another process until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(directory)],
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


def make_project(directory: Path, *, close: bool = True) -> LocalProject:
    """Make a project with one staged file; it is not started."""
    project = LocalProject(directory, hosts=0, quirks=Quirks(limits=PhpLimits.none()))
    project.core.download.add_bytes(_FILE, b"input\n")
    if close:
        project.close()
    return project


def _batch(name: str, jobs: int) -> str:
    file = f"<input_file><mode>local_staged</mode><source>{_FILE}</source></input_file>"
    listed = "".join(
        f"<job><name>{name}_job_{i}</name><command_line>-n {i}</command_line>{file}</job>"
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
