"""What remote job submission is asked, and what it answers.

Points in time are seconds since the epoch, durations seconds, sizes bytes.
"""

from __future__ import annotations

from boinc_gahp.bridge import (
    Failure,
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
from boinc_gahp.states import JobState

__all__ = [
    "Failure",
    "File",
    "InlineFile",
    "Job",
    "JobState",
    "LocalFile",
    "OnProgress",
    "Parameters",
    "Progress",
    "RemoteFile",
    "StagedFile",
]
