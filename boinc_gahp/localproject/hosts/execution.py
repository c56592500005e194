"""Runs a job's app in its slot: no shell, bounds enforced, all processes it started ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from boinc_gahp.backoff import Backoff
from boinc_gahp.localproject.hosts.processes import MARK, ProcessFamily

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from boinc_gahp.localproject.hosts.client_errors import JobFailed
    from boinc_gahp.localproject.hosts.limits import LimitWatch
    from boinc_gahp.localproject.hosts.slot import Slot

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
