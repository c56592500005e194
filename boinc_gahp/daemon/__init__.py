"""The process that HTCondor spawns: stdin loop, worker threads, the one writer of stdout, console.

Only ``main`` is imported before the banner is out. ``loop`` moves bytes, ``engine`` answers lines,
``pool`` has the threads, ``projects`` the settings, the contexts of projects and the service for
HTCondor's jobs, ``dispatch`` turns requests into calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.daemon.console.console import run_console as run_console
    from boinc_gahp.daemon.main import forbid_core_dumps as forbid_core_dumps, serve as serve

__getattr__, __dir__ = exports(
    __name__,
    {
        "console.console": ["run_console"],
        "main": ["forbid_core_dumps", "serve"],
    },
)
