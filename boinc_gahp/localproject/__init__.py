"""A BOINC project in one process, on 127.0.0.1: for trying out, for tests, for learning.

It answers BOINC's web RPCs as the real server does (``web-rpcs.rst``), keeps its data in BOINC's
own tables on SQLite, and has a few volunteers that run jobs as processes on this machine
(``back-end.rst``).

Its names are imported at first use: the command line's parsers need few of them, and not the
packages of the extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boinc_gahp.localproject.backend.create_work import NewJob, RemoteInput, WorkError
    from boinc_gahp.localproject.backend.generator import WorkRequest
    from boinc_gahp.localproject.database import DatabaseError
    from boinc_gahp.localproject.directory import ProjectDirectoryError
    from boinc_gahp.localproject.project import LocalProject, ProjectFailed
    from boinc_gahp.localproject.quirks import PhpLimits, Quirks
    from boinc_gahp.localproject.run import init_project, run_project
    from boinc_gahp.localproject.states import BatchState, ErrorMask

__all__ = [
    "BatchState",
    "DatabaseError",
    "ErrorMask",
    "LocalProject",
    "NewJob",
    "PhpLimits",
    "ProjectDirectoryError",
    "ProjectFailed",
    "Quirks",
    "RemoteInput",
    "WorkError",
    "WorkRequest",
    "init_project",
    "run_project",
]

_MODULES = {
    "BatchState": "states",
    "DatabaseError": "database",
    "ErrorMask": "states",
    "LocalProject": "project",
    "NewJob": "create_work",
    "PhpLimits": "quirks",
    "ProjectDirectoryError": "directory",
    "ProjectFailed": "project",
    "Quirks": "quirks",
    "RemoteInput": "create_work",
    "WorkError": "create_work",
    "WorkRequest": "generator",
    "init_project": "commands",
    "run_project": "commands",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
