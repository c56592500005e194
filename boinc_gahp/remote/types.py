"""What remote job submission is asked, and what it answers.

Points in time are seconds since the epoch, durations seconds, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from boinc_gahp.bridge import (
    Failure,
    File,
    InlineFile,
    Job,
    LocalFile,
    OnProgress,
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


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a batch's jobs need, and may use; None leaves the choice to the app's template.

    What is asked for counts, whatever a template says: it is filled into a copy of the template
    that goes with the jobs, if that says otherwise. It cannot be asked for together with
    ``input_template_filename``, a template that nobody can read from here.

    Attributes:
        fpops_est: floating-point operations that a job takes, about.
        fpops_bound: the number of them at which a volunteer gives it up.
        memory_bound: bytes of memory.
        disk_bound: bytes of disk.
        delay_bound: seconds that a volunteer has for it.
    """

    fpops_est: float | None = None
    fpops_bound: float | None = None
    memory_bound: float | None = None
    disk_bound: float | None = None
    delay_bound: float | None = None
