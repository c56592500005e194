"""Counts of a program that runs: what ``counting/sitecustomize.py`` writes in it."""

from __future__ import annotations

import struct
from pathlib import Path

_DIRECTORY = Path(__file__).parent / "counting"


class Counts:
    """Three numbers in a file: whether the program counts, its fsyncs, and its peak memory.

    Args:
        path: of the file; it is created.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(bytes(24))

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make a Python program count."""
        return {"PYTHONPATH": str(_DIRECTORY), "BOINC_GAHP_BENCH_COUNTS": str(self._path)}

    @property
    def syncs(self) -> int | None:
        """Calls of os.fsync and os.fdatasync so far; None if the program is not in Python."""
        counting, syncs, _ = self._read()
        return syncs if counting else None

    @property
    def peak_memory(self) -> int:
        """The peak memory (VmHWM) in bytes of a program that has ended; 0 if it is not known."""
        return self._read()[2]

    def _read(self) -> tuple[int, int, int]:
        counting, syncs, peak = struct.unpack("qqq", self._path.read_bytes())
        return counting, syncs, peak
