"""A BOINC project's web RPCs, the layer below the Python API for remote job submission.

::

    with WebRpcs("https://boinc.example.edu/test/", authenticator) as project:
        for batch in project.query_batches():
            print(batch.name, batch.state.name, batch.njobs)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports
from boinc_gahp.states import BatchState

if TYPE_CHECKING:
    from boinc_gahp.rpc.client import WebRpcs as WebRpcs
    from boinc_gahp.rpc.command_lines import command_line as command_line
    from boinc_gahp.rpc.options import ClientOptions as ClientOptions
    from boinc_gahp.rpc.outputs import OutputStream as OutputStream
    from boinc_gahp.rpc.retry import BACKOFF as BACKOFF, dropped as dropped
    from boinc_gahp.rpc.site import ProjectSite as ProjectSite, must_be_private as must_be_private
    from boinc_gahp.rpc.spool import NoRoom as NoRoom
    from boinc_gahp.rpc.types import (
        OVERLAP as OVERLAP,
        AppInfo as AppInfo,
        AppVersionInfo as AppVersionInfo,
        BatchDetails as BatchDetails,
        BatchInfo as BatchInfo,
        BatchSubmission as BatchSubmission,
        CompletedJob as CompletedJob,
        InputFile as InputFile,
        JobInfo as JobInfo,
        JobParams as JobParams,
        JobStatus as JobStatus,
        JobStatuses as JobStatuses,
        JobSubmission as JobSubmission,
        ProjectInfo as ProjectInfo,
        ResultInfo as ResultInfo,
        UploadFile as UploadFile,
    )

#: The documented names; the others are for other rooms.
__all__ = [
    "BatchDetails",
    "BatchInfo",
    "BatchState",
    "BatchSubmission",
    "ClientOptions",
    "CompletedJob",
    "InputFile",
    "JobInfo",
    "JobParams",
    "JobStatus",
    "JobStatuses",
    "JobSubmission",
    "NoRoom",
    "OutputStream",
    "ResultInfo",
    "UploadFile",
    "WebRpcs",
    "command_line",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "client": ["WebRpcs"],
        "command_lines": ["command_line"],
        "options": ["ClientOptions"],
        "outputs": ["OutputStream"],
        "retry": ["BACKOFF", "dropped"],
        "site": ["ProjectSite", "must_be_private"],
        "spool": ["NoRoom"],
        "types": [
            "OVERLAP",
            "AppInfo",
            "AppVersionInfo",
            "BatchDetails",
            "BatchInfo",
            "BatchSubmission",
            "CompletedJob",
            "InputFile",
            "JobInfo",
            "JobParams",
            "JobStatus",
            "JobStatuses",
            "JobSubmission",
            "ProjectInfo",
            "ResultInfo",
            "UploadFile",
        ],
    },
)
