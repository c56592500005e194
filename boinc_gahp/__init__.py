"""Sends jobs, HTCondor's and others, to the volunteers of a BOINC project.

Importing this package is deliberately quick: the daemon prints its banner before it loads anything
slow. The names of the Python API are imported at first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boinc_gahp._version import __version__

if TYPE_CHECKING:
    from boinc_gahp import errors as errors
    from boinc_gahp.api.batch import Batch, BatchJob
    from boinc_gahp.api.finding import App
    from boinc_gahp.api.futures.functions import Function
    from boinc_gahp.api.futures.job_futures import JobFuture, JobFutures, JobResult
    from boinc_gahp.api.known_batch import Counts
    from boinc_gahp.api.manifest import SubmittedInput, SubmittedJob
    from boinc_gahp.api.outputs.fetching import Fetched
    from boinc_gahp.api.outputs.logs import Reason
    from boinc_gahp.api.project import Project
    from boinc_gahp.api.rows.reading import jobs_from
    from boinc_gahp.api.session import Session
    from boinc_gahp.api.submission import Plan
    from boinc_gahp.api.watching import Poll
    from boinc_gahp.fetch.job_end import JobEnd
    from boinc_gahp.states import BatchState, JobState
    from boinc_gahp.submit.types import (
        File,
        InlineFile,
        Job,
        LocalFile,
        OnProgress,
        Parameters,
        Progress,
        RemoteFile,
        StagedFile,
    )

__all__ = [
    "App",
    "Batch",
    "BatchJob",
    "BatchState",
    "Counts",
    "Fetched",
    "File",
    "Function",
    "InlineFile",
    "Job",
    "JobEnd",
    "JobFuture",
    "JobFutures",
    "JobResult",
    "JobState",
    "LocalFile",
    "OnProgress",
    "Parameters",
    "Plan",
    "Poll",
    "Progress",
    "Project",
    "Reason",
    "RemoteFile",
    "Session",
    "StagedFile",
    "SubmittedInput",
    "SubmittedJob",
    "__version__",
    "jobs_from",
]

#: The names of the Python API, by the module that has them.
_PLACES = {
    "api.finding": ["App"],
    "api.batch": ["Batch", "BatchJob"],
    "api.outputs.fetching": ["Fetched"],
    "api.futures.functions": ["Function"],
    "api.futures.job_futures": ["JobFuture", "JobFutures", "JobResult"],
    "api.known_batch": ["Counts"],
    "api.manifest": ["SubmittedInput", "SubmittedJob"],
    "api.project": ["Project"],
    "api.outputs.logs": ["Reason"],
    "api.session": ["Session"],
    "api.submission": ["Plan"],
    "api.rows.reading": ["jobs_from"],
    "api.watching": ["Poll"],
    "fetch.job_end": ["JobEnd"],
    "states": ["BatchState", "JobState"],
    "submit.types": [
        "File",
        "InlineFile",
        "Job",
        "LocalFile",
        "OnProgress",
        "Parameters",
        "Progress",
        "RemoteFile",
        "StagedFile",
    ],
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{module}"), name)
            setattr(sys.modules[__name__], name, value)  # so that this is not called for it again
            return value
    if name == "errors":
        return import_module("boinc_gahp.errors")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what a user needs: Tab offers nothing else."""
    return sorted([*__all__, "errors"])
