"""The values that remote job submission takes and returns.

Points in time are seconds since the epoch, durations are in seconds, sizes in bytes.
"""

from __future__ import annotations

from boinc_gahp.fetch.job_end import JobEnd
from boinc_gahp.states import JobState
from boinc_gahp.submit.types import (
    CommandRecord,
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
    "CommandRecord",
    "File",
    "InlineFile",
    "Job",
    "JobEnd",
    "JobState",
    "LocalFile",
    "OnProgress",
    "Parameters",
    "Progress",
    "RemoteFile",
    "StagedFile",
]
