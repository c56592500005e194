"""A job's bounds, and what it uses of them: time, memory, disk (``back-end.rst``, "Hosts").

Use is sampled, as BOINC's client does it: what a job uses between two checks goes unnoticed. But a
single file cannot grow past the disk bound even then, and there is never a core file.
"""

from __future__ import annotations

import math
import resource
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from boinc_gahp.client_exits import (
    EXIT_DISK_LIMIT_EXCEEDED,
    EXIT_MEM_LIMIT_EXCEEDED,
    EXIT_TIME_LIMIT_EXCEEDED,
)
from boinc_gahp.localproject.hosts.client_errors import JobFailed

if TYPE_CHECKING:
    from boinc_gahp.localproject.backend.scheduler import Task
    from boinc_gahp.localproject.hosts.processes import ProcessFamily
    from boinc_gahp.localproject.hosts.slot import Slot

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
            EXIT_TIME_LIMIT_EXCEEDED,
            f"exceeded elapsed time limit {self._task.time_limit:.2f} s",
        )


def _bounded(value: float) -> bool:
    return 0 < value < math.inf


def _megabytes(used: float, bound: float) -> str:
    return f"{used / _MB:.2f}MB > {bound / _MB:.2f}MB"
