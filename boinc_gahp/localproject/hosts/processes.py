"""The processes of a job: the app's and all that it has started, found in ``/proc``.

A process belongs to a job if its parent is the app or another process of the job, if it is in a
session of theirs, or if its environment has the job's mark. So neither setsid nor the end of its
parent hides it, nor both together. Only a process that has cleared its environment, begun a session
and lost its parent before it was first seen stays hidden. Without ``/proc`` nothing is found, and
only the app's process group is ended.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
