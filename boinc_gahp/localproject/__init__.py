"""A BOINC project in one process, on 127.0.0.1: for trying out, for tests, for learning.

It answers BOINC's web RPCs as the real server does (``web-rpcs.md``), keeps its data in BOINC's own
tables on SQLite, and has a few volunteers that run jobs as processes on this machine
(``back-end.md``).
"""

from .commands import init_project, run_project
from .create_work import NewJob, RemoteFile, WorkError
from .database import DatabaseError
from .directory import ProjectDirectoryError
from .generator import WorkRequest
from .project import LocalProject, ProjectFailed
from .quirks import PhpLimits, Quirks
from .states import BatchState, ErrorMask

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
    "RemoteFile",
    "WorkError",
    "WorkRequest",
    "init_project",
    "run_project",
]
