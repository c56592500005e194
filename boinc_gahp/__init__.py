"""Sends jobs, HTCondor's and others, to the volunteers of a BOINC project.

Importing this package is deliberately quick: the daemon prints its banner before it loads anything
slow. The names of the Python API are imported at first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from boinc_gahp._version import __version__

if TYPE_CHECKING:
    from boinc_gahp import errors as errors
    from boinc_gahp.api.batch import Batch as Batch, BatchJob as BatchJob
    from boinc_gahp.api.finding import App as App
    from boinc_gahp.api.futures.functions import Function as Function
    from boinc_gahp.api.futures.job_futures import (
        JobFuture as JobFuture,
        JobFutures as JobFutures,
        JobResult as JobResult,
    )
    from boinc_gahp.api.known_batch import Counts as Counts
    from boinc_gahp.api.manifest import (
        SubmittedInput as SubmittedInput,
        SubmittedJob as SubmittedJob,
    )
    from boinc_gahp.api.outputs.fetching import Fetched as Fetched
    from boinc_gahp.api.outputs.logs import Reason as Reason
    from boinc_gahp.api.project import Project as Project
    from boinc_gahp.api.rows.reading import jobs_from as jobs_from
    from boinc_gahp.api.session import Session as Session
    from boinc_gahp.api.submission import Plan as Plan
    from boinc_gahp.api.watching import Poll as Poll
    from boinc_gahp.fetch.job_end import JobEnd as JobEnd
    from boinc_gahp.quantities import Duration as Duration
    from boinc_gahp.states import BatchState as BatchState, JobState as JobState
    from boinc_gahp.submit.types import (
        File as File,
        InlineFile as InlineFile,
        Job as Job,
        LocalFile as LocalFile,
        OnProgress as OnProgress,
        Parameters as Parameters,
        Progress as Progress,
        RemoteFile as RemoteFile,
        StagedFile as StagedFile,
    )

#: The names of the Python API, by the module that has them.
_PLACES = {
    "api.finding": ["App"],
    "api.batch": ["Batch", "BatchJob"],
    "api.outputs.fetching": ["Fetched"],
    "api.futures.functions": ["Function"],
    "api.futures.job_futures": ["JobFuture", "JobFutures", "JobResult"],
    "api.manifest": ["SubmittedInput", "SubmittedJob"],
    "api.project": ["Project"],
    "api.outputs.logs": ["Reason"],
    "api.known_batch": ["Counts"],
    "api.session": ["Session"],
    "api.submission": ["Plan"],
    "api.rows.reading": ["jobs_from"],
    "api.watching": ["Poll"],
    "fetch.job_end": ["JobEnd"],
    "quantities": ["Duration"],
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

__all__ = ["__version__", *sorted(chain.from_iterable(_PLACES.values()))]  # noqa: PLE0604


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
