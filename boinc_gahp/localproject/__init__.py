"""A BOINC project in one process, on 127.0.0.1: for trying out, for tests, for learning.

It answers BOINC's web RPCs as the real server does (``web-rpcs.rst``), keeps its data in BOINC's
own tables on SQLite, and has a few volunteers that run jobs as processes on this machine
(``back-end.rst``).

Its names are imported at first use: the command line's parsers need few of them, and not the
packages of the extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.localproject.backend.create_work import (
        NewJob as NewJob,
        RemoteInput as RemoteInput,
        WorkError as WorkError,
    )
    from boinc_gahp.localproject.backend.generator import WorkRequest as WorkRequest
    from boinc_gahp.localproject.core import ProjectFailed as ProjectFailed
    from boinc_gahp.localproject.database import DatabaseError as DatabaseError
    from boinc_gahp.localproject.directory import ProjectDirectoryError as ProjectDirectoryError
    from boinc_gahp.localproject.php import STOCK as STOCK, Php as Php
    from boinc_gahp.localproject.project import LocalProject as LocalProject
    from boinc_gahp.localproject.run import init_project as init_project, run_project as run_project
    from boinc_gahp.localproject.states import BatchState as BatchState, ErrorMask as ErrorMask

#: The documented names.
__all__ = [
    "STOCK",
    "BatchState",
    "DatabaseError",
    "ErrorMask",
    "LocalProject",
    "NewJob",
    "Php",
    "ProjectDirectoryError",
    "ProjectFailed",
    "RemoteInput",
    "WorkError",
    "WorkRequest",
    "init_project",
    "run_project",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "backend.create_work": ["NewJob", "RemoteInput", "WorkError"],
        "backend.generator": ["WorkRequest"],
        "core": ["ProjectFailed"],
        "database": ["DatabaseError"],
        "directory": ["ProjectDirectoryError"],
        "php": ["STOCK", "Php"],
        "project": ["LocalProject"],
        "run": ["init_project", "run_project"],
        "states": ["BatchState", "ErrorMask"],
    },
)
