"""Drives a GAHP program on pipes, as a gridmanager does, and measures it."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.gahp import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from scripts.benchmarks.counts import Counts


class Gahp:
    """A running GAHP program; a context manager.

    Args:
        command: the program and its arguments.
        home: the directory that stands for the user's home.
        counts: where it counts its fsyncs; None if it does not.
        asynchronous: let it print R, and fetch results when it does.

    Attributes:
        banner_after: seconds from the spawn to the whole of the banner.
        answered_after: seconds from the spawn to the first Return Line.
    """

    def __init__(
        self,
        command: Sequence[str],
        home: Path,
        counts: Counts | None = None,
        *,
        asynchronous: bool = True,
    ) -> None:
        self._counts = counts
        environment = clean_environment(home) | (counts.environment if counts else {})
        began = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=environment,
            bufsize=0,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._stdin = self._process.stdin.fileno()
        self._stdout = self._process.stdout.fileno()
        self._buffer = bytearray()
        self._results: dict[str, bytes] = {}
        self._ready = False
        self._number = 1
        try:
            self.banner = self._line()
        except RuntimeError:
            self.__exit__()
            raise
        self.banner_after = time.perf_counter() - began
        if asynchronous:
            self.call("ASYNC_MODE_ON")
        self.answered_after = time.perf_counter() - began

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()

    @property
    def peak_memory(self) -> int:
        """The peak memory of the process, in bytes (VmHWM)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024

    @property
    def bytes_read(self) -> int:
        """Bytes that the process has read from files and pipes so far (rchar)."""
        io = Path(f"/proc/{self._process.pid}/io").read_text(encoding="ascii")
        return int(io.split("rchar: ")[1].split()[0])

    @property
    def processor_time(self) -> float:
        """Seconds of processor time that the process has used so far, user and system."""
        # CPUCLOCK_SCHED of a process (clock_getcpuclockid(3)): nanoseconds, where stat has ticks.
        return time.clock_gettime((~self._process.pid << 3) | 2)

    @property
    def syncs(self) -> int | None:
        """Calls of os.fsync and os.fdatasync so far; None if they are not counted."""
        return self._counts.syncs if self._counts else None

    def next_id(self) -> str:
        """Return a new request id."""
        self._number += 1
        return str(self._number)

    def call(self, line: str | bytes) -> bytes:
        """Send a Request Line; return its Return Line."""
        self.send(line)
        return self.return_line()

    def send(self, line: str | bytes) -> None:
        """Send a Request Line."""
        data = (line.encode() if isinstance(line, str) else line) + b"\r\n"
        writer = threading.Thread(target=self._write, args=(data,))
        if len(data) > 4096:  # a long line fills the pipe: another thread writes it
            writer.start()
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._stdin, view) :]

    def return_line(self) -> bytes:
        """Return the next Return Line."""
        while (line := self._line()) == b"R":
            self._ready = True
        return line

    def result(self, request_id: str) -> bytes:
        """Wait for a request's Result Line and return it."""
        while request_id not in self._results:
            if not self._ready:
                line = self._line()
                if line != b"R":
                    raise RuntimeError(f"{line[:100]!r} came where R was expected")
            self._ready = False
            self._fetch()
        return self._results.pop(request_id)

    def wait_for(self, request_ids: Sequence[str]) -> None:
        """Wait for requests that must succeed."""
        for request_id in request_ids:
            line = self.result(request_id)
            if line.split(b" ")[1] != b"NULL":
                raise RuntimeError(f"a request failed: {line[:500].decode(errors='replace')}")

    def next_results(self) -> dict[str, list[str]]:
        """Wait for results; return the words of all that have come, by request id."""
        if not self._ready:
            line = self._line()
            if line != b"R":
                raise RuntimeError(f"{line[:100]!r} came where R was expected")
        self._ready = False
        self._fetch()
        taken, self._results = self._results, {}
        return {each: lines.split(line) for each, line in taken.items()}

    def _fetch(self) -> None:
        head = self.call("RESULTS")
        for _ in range(int(head.split()[1])):
            line = self._line()
            self._results[line.split(b" ", 1)[0].decode()] = line

    def _line(self) -> bytes:
        # Search each byte only once: a result can have 10 MB.
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            data = os.read(self._stdout, 1 << 20)
            if not data:
                raise RuntimeError("the program has ended")
            self._buffer += data
        line = bytes(self._buffer[:end]).rstrip(b"\r")
        del self._buffer[: end + 1]
        return line


def clean_environment(home: Path) -> dict[str, str]:
    """Return the variables that a gridmanager passes on, without this user's settings."""
    kept = {key: value for key, value in os.environ.items() if key in {"PATH", "LANG"}}
    return {**kept, "HOME": str(home), "GAHP_TEMP": str(home)}
