"""Sends jobs, HTCondor's and others, to the volunteers of a BOINC project.

Importing this package is deliberately quick: the daemon prints its banner before it loads anything
slow. The Python API (:mod:`boinc_gahp.api`) is imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boinc_gahp._version import __version__

if TYPE_CHECKING:
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
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from boinc_gahp import remote  # noqa: PLC0415  (kept out of the daemon's start-up)

        return getattr(remote, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
