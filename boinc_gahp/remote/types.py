"""What remote job submission is asked, and what it answers.

Points in time are seconds since the epoch, durations seconds, sizes bytes.
"""

from __future__ import annotations

from enum import Enum

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


class JobState(Enum):
    """How a job is doing; the values are words for people."""

    QUEUED = "queued"
    """No volunteer has it yet."""
    IN_PROGRESS = "in progress"
    """At least one instance was sent."""
    DONE = "done"
    """It has a canonical instance: its outputs can be fetched."""
    FAILED = "failed"
    """It came to nothing, or was aborted before it was done."""
    UNKNOWN = "unknown"
    """A word that this program does not know; never read as success."""
