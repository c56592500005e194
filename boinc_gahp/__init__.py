"""Sends jobs, HTCondor's and others, to the volunteers of a BOINC project.

Importing this package is deliberately quick: the daemon prints its banner before it loads anything
slow. The Python API (:mod:`boinc_gahp.api`) is imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from boinc_gahp._version import __version__
from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp import errors as errors
    from boinc_gahp.api import (
        Batch,
        BatchJob,
        BatchState,
        InlineFile,
        Job,
        JobState,
        LocalFile,
        Parameters,
        Progress,
        Project,
        RemoteFile,
        StagedFile,
        jobs_from,
    )

__all__ = [
    "Batch",
    "BatchJob",
    "BatchState",
    "InlineFile",
    "Job",
    "JobState",
    "LocalFile",
    "Parameters",
    "Progress",
    "Project",
    "RemoteFile",
    "StagedFile",
    "__version__",
    "jobs_from",
]

_get, _ = exports(__name__, {"api": [name for name in __all__ if name != "__version__"]})


def __getattr__(name: str) -> Any:
    return import_module("boinc_gahp.errors") if name == "errors" else _get(name)


def __dir__() -> list[str]:
    """Return what a user needs: Tab offers nothing else."""
    return sorted([*__all__, "errors"])
