"""The values that remote job submission takes and returns.

Points in time are seconds since the epoch, durations are in seconds, sizes in bytes.
"""

from __future__ import annotations

from boinc_gahp.fetch.types import Failure
from boinc_gahp.states import JobState
from boinc_gahp.submit.types import (
    File,
    InlineFile,
    Job,
    LocalFile,
    OnProgress,
    Parameters,
    ProgramWords,
    Progress,
    RemoteFile,
    StagedFile,
)

__all__ = [
    "Failure",
    "File",
    "InlineFile",
    "Job",
    "JobState",
    "LocalFile",
    "OnProgress",
    "Parameters",
    "ProgramWords",
    "Progress",
    "RemoteFile",
    "StagedFile",
]
