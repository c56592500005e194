"""Runs a job's app in its slot: no shell, bounds enforced, all processes it started ended.

A process belongs to a job if its parent is the app or another process of the job, if it is in a
session of theirs, or if its environment has the job's mark. So neither setsid nor the end of its
parent hides it, nor both together. Only a process that has cleared its environment, begun a session
and lost its parent before it was first seen stays hidden. Without ``/proc`` nothing is found, and
only the app's process group is ended.

Use of time, memory and disk is sampled (``back-end.rst``, "Hosts"), as BOINC's client does it: what
a job uses between two checks goes unnoticed. But a single file cannot grow past the disk bound even
then, and there is never a core file.
"""

from __future__ import annotations

import logging
import math
import os
import resource
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from boinc_gahp.backoff import Backoff
from boinc_gahp.client_exits import (
    EXIT_DISK_LIMIT_EXCEEDED,
    EXIT_MEM_LIMIT_EXCEEDED,
    EXIT_TIME_LIMIT_EXCEEDED,
)
from boinc_gahp.localproject.errors import JobFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boinc_gahp.localproject.backend.scheduler import Task
    from boinc_gahp.localproject.hosts.slot import Slot


log = logging.getLogger("boinc_gahp.localproject")

#: The variable that marks a job's processes; its value is the path of the slot.
MARK = "BOINC_LOCAL_PROJECT_SLOT"

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_KILL_TIMEOUT = 5.0
_KILL_PAUSE = 0.005


@dataclass(frozen=True, slots=True)
class Process:
    """A process as it was last seen.

    Attributes:
        start: its start time, which tells it from another with the same number.
        memory: resident, in bytes; shared memory is counted for each process.
    """

    pid: int
    start: int
    session: int
    ended: bool
    memory: int


def look_at(pid: int) -> Process | None:
    """Return a process, None if it is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The name before the last bracket may contain anything. Numbered as in proc(5), minus 3.
    fields = text.rpartition(")")[2].split()
    return Process(
        pid=pid,
        start=int(fields[19]),
        session=int(fields[3]),
        ended=fields[0] in "ZXx",
        memory=int(fields[21]) * _PAGE,
    )


class ProcessFamily:
    """The processes of one job.

    Attributes:
        root: the app's process id; 0 if only the mark is known.
    """

    def __init__(self, slot: Path, root: int = 0) -> None:
        self.root = root
        self._mark = f"{MARK}={slot}\0".encode()
        self._seen: dict[int, Process] = {}
        self._sessions = {root} - {0}

    def look(self, *, everywhere: bool = False) -> list[Process]:
        """Return the running ones; ``everywhere``: not only children of known processes."""
        pids = {self.root, *self._seen} - {0}
        if everywhere:
            pids.update(self._marked())
        found: dict[int, Process] = {}
        waiting = list(pids)
        while waiting:
            pid = waiting.pop()
            process = look_at(pid)
            before = self._seen.get(pid)
            reused = before is not None and process is not None and before.start != process.start
            if pid not in found and process is not None and not reused:
                found[pid] = process
                waiting.extend(_children(pid))
        self._seen = found
        self._sessions.update(process.session for process in found.values())
        return [process for process in found.values() if not process.ended]

    def kill(self) -> None:
        """End all of them; an app that has already ended is left to be waited for."""
        deadline = time.monotonic() + _KILL_TIMEOUT
        pause = threading.Event()
        while running := self.look(everywhere=True):
            if time.monotonic() > deadline:
                log.warning("processes %s cannot be ended", [each.pid for each in running])
                break
            for process in running:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, signal.SIGKILL)
            pause.wait(_KILL_PAUSE)
        if self.root:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.root, signal.SIGKILL)

    def _marked(self) -> Iterator[int]:
        # After each job this looks at all processes of the machine: pathlib would take five times
        # as long.
        own = os.getpid()
        for pid in _all_processes():
            with suppress(OSError):
                if pid != own and (
                    os.getsid(pid) in self._sessions or self._mark in _environment(pid)
                ):
                    yield pid


def _environment(pid: int) -> bytes:
    with open(f"{_PROC}/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _all_processes() -> Iterator[int]:
    with suppress(OSError):
        for name in os.listdir(_PROC):  # noqa: PTH208
            if name.isdigit():
                yield int(name)


def _children(pid: int) -> Iterable[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                found.extend(map(int, (thread / "children").read_text("ascii").split()))
    return found


_MB = 1 << 20
#: Seconds between two checks of memory, of the slot's size, and of all processes of the machine.
_MEMORY_EVERY = 0.02
_DISK_EVERY = 0.2
_EVERYWHERE_EVERY = 1.0


class _Every:
    """Tells when to check again; the first time after one interval."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._next = time.monotonic() + interval

    def due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._interval
        return True


class LimitWatch:
    """Notices when a job exceeds a bound; created when the job is started. 0 or infinity: no bound.

    ``inputs`` is the size, in bytes, of the input files that are only linked into the slot: they
    count too (``templates.rst``, "Job parameters").
    """

    def __init__(self, task: Task, slot: Slot, inputs: int = 0) -> None:
        self._task = task
        self._slot = slot
        self._inputs = inputs
        self._memory = _Every(_MEMORY_EVERY)
        self._disk = _Every(_DISK_EVERY)
        self._everywhere = _Every(_EVERYWHERE_EVERY)

    def begin(self, pid: int) -> None:
        """Set the limits that the system itself enforces for a process that was just started."""
        if not hasattr(resource, "prlimit"):
            return
        largest = self._task.disk_bound + 1
        with suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
            if _bounded(self._task.disk_bound) and largest < 1 << 62:
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (int(largest), int(largest)))

    def check(self, elapsed: float, family: ProcessFamily) -> JobFailed | None:
        """Check a running job, unless that was just done; return the bound that it has exceeded."""
        if self._everywhere.due():
            family.look(everywhere=True)
        if self._memory.due():
            used = sum(process.memory for process in family.look())
            if _bounded(self._task.memory_bound) and used > self._task.memory_bound:
                return JobFailed(
                    EXIT_MEM_LIMIT_EXCEEDED,
                    "working set size > workunit.rsc_memory_bound: "
                    f"{_megabytes(used, self._task.memory_bound)}",
                )
        return self.check_slot(elapsed)

    def check_slot(self, elapsed: float) -> JobFailed | None:
        """Check time and disk only, like :meth:`check`; for a job whose processes are not ours."""
        if self._disk.due():
            exceeded = self.check_disk()
            if exceeded is not None:
                return exceeded
        return self.check_time(elapsed)

    def check_disk(self) -> JobFailed | None:
        """Return an error if the job's files take more space than allowed."""
        used = self._slot.usage() + self._inputs if _bounded(self._task.disk_bound) else 0
        if not _bounded(self._task.disk_bound) or used <= self._task.disk_bound:
            return None
        return JobFailed(
            EXIT_DISK_LIMIT_EXCEEDED,
            f"Maximum disk usage exceeded: {_megabytes(used, self._task.disk_bound)}",
        )

    def check_time(self, elapsed: float) -> JobFailed | None:
        """Return an error if the job has taken longer than allowed."""
        if not _bounded(self._task.time_limit) or elapsed <= self._task.time_limit:
            return None
        return JobFailed(
            EXIT_TIME_LIMIT_EXCEEDED, f"exceeded elapsed time limit {self._task.time_limit:.2f} s"
        )


def _bounded(value: float) -> bool:
    return 0 < value < math.inf


def _megabytes(used: float, bound: float) -> str:
    return f"{used / _MB:.2f}MB > {bound / _MB:.2f}MB"


#: Time between two checks whether an app has ended; the latter if its writing gets it killed.
_BACKOFF = Backoff(0.004, 0.1, factor=1.3)
_CRASH_BACKOFF = Backoff(0.004, 0.01, factor=1.3)


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How the app ended; times in seconds. ``signal`` 0: not by a signal.

    ``exceeded``: the bound for which it was killed.
    """

    status: int = 0
    signal: int = 0
    elapsed_time: float = 0.0
    cpu_time: float = 0.0
    exceeded: JobFailed | None = None


def execute(
    command: Sequence[str],
    slot: Slot,
    stderr: BinaryIO,
    watch: LimitWatch,
    *,
    stop: threading.Event,
    crash_in: Sequence[str] = (),
) -> ProcessEnd | None:
    """Run the app; return None if ``stop`` was set before its end, for which it was killed.

    With ``crash_in`` it is killed by SIGSEGV as soon as one of the outputs with these open names
    has contents.

    Raises:
        OSError: it cannot be started.
    """
    directory = slot.directory.resolve()
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "LANG": "C.UTF-8",
        MARK: str(directory),
    }
    with (slot.directory / "stdout.txt").open("wb") as stdout:
        begin = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=slot.directory,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
    family = ProcessFamily(directory, process.pid)
    exceeded = None
    looks = 0
    backoff = _CRASH_BACKOFF if crash_in else _BACKOFF
    try:
        watch.begin(process.pid)
        while not _has_ended(process.pid):
            exceeded = watch.check(time.monotonic() - begin, family)
            if exceeded is not None or not backoff.wait(looks, stop=stop):
                break
            looks += 1
            if any(_has_contents(slot, open_name) for open_name in crash_in):
                os.kill(process.pid, signal.SIGSEGV)
        elapsed = time.monotonic() - begin
        by_itself = _has_ended(process.pid)
    finally:
        # Even if something cannot be checked, no process of a job outlives it.
        family.kill()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if not by_itself and exceeded is None:
        return None
    return ProcessEnd(
        status=max(process.returncode, 0),
        signal=max(-process.returncode, 0),
        elapsed_time=elapsed,
        cpu_time=usage.ru_utime + usage.ru_stime,
        exceeded=exceeded or watch.check_disk(),
    )


def _has_ended(pid: int) -> bool:
    """Whether our child has ended; it is not waited for, so that its number stays taken."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _has_contents(slot: Slot, open_name: str) -> bool:
    path = slot.output(open_name)
    try:
        return path is not None and path.is_file() and path.stat().st_size > 0
    except FileNotFoundError:  # the app has moved it meanwhile
        return False
