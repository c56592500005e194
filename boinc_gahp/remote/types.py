"""What remote job submission is asked, and what it answers.

Points in time are seconds since the epoch, durations seconds, sizes bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.bridge import (
    Failure,
    InlineFile,
    Input,
    LocalFile,
    OnProgress,
    Progress,
    RemoteFile,
    StagedFile,
)
from boinc_gahp.states import JobState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


#: An input file; a plain path stands for a :class:`LocalFile`.
File = Input | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Job:
    """One job to be submitted.

    Attributes:
        args: words, as they are; or one string, which is split as a shell would.
        inputs: files by the open names of the input template, which are all to be there. Only
            with a template that the project keeps (``input_template_filename``), whose names
            nobody can look up, they go in the order given.
        name: unique over the whole project, for ever; None: made of the batch's name and the job's
            number in it.
        priority: None: the batch's.
        fpops: floating-point operations that it takes, about; None: the batch's. Counts as
            :class:`Parameters` do.
        input_template: XML text of its own; None: the app's.
        output_template: likewise.
    """

    args: Sequence[str] | str = ()
    inputs: Mapping[str, File] = field(default_factory=dict)
    name: str | None = None
    priority: int | None = None
    fpops: float | None = None
    input_template: str | None = None
    output_template: str | None = None


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
