"""Counts calls of os.fsync and os.fdatasync in the program that is measured, and its peak memory.

Python imports a module of this name at its start; scripts/bench puts this directory into PYTHONPATH
and names a file of three numbers (see ``counts.py``) in the environment.
"""

from __future__ import annotations

import atexit
import mmap
import os
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _count(path: str) -> None:
    with open(path, "r+b") as file:  # noqa: PTH123  (pathlib would be imported for it)
        cells = mmap.mmap(file.fileno(), 24)
    lock = threading.Lock()
    struct.pack_into("q", cells, 0, 1)

    def counted(sync: Callable[[int], None]) -> Callable[[int], None]:
        def call(file: int) -> None:
            with lock:
                struct.pack_into("q", cells, 8, struct.unpack_from("q", cells, 8)[0] + 1)
            sync(file)

        return call

    os.fsync = counted(os.fsync)  # type: ignore[assignment]
    os.fdatasync = counted(os.fdatasync)  # type: ignore[assignment]

    def tell_peak() -> None:
        with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
            peak = status.read().partition("VmHWM:")[2].split()[0]
        struct.pack_into("q", cells, 16, int(peak) * 1024)

    atexit.register(tell_peak)


if "BOINC_GAHP_BENCH_COUNTS" in os.environ:
    _count(os.environ["BOINC_GAHP_BENCH_COUNTS"])
