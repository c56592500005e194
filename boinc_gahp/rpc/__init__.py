"""A BOINC project's web RPCs, and so the Python API for remote job submission.

::

    with Project("https://boinc.example.edu/test/", authenticator) as project:
        for batch in project.query_batches():
            print(batch.name, batch.state.name, batch.njobs)
"""

from boinc_gahp.rpc.client import Project
from boinc_gahp.rpc.command_lines import command_line
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.outputs import OutputStream
from boinc_gahp.rpc.spool import NoRoom
from boinc_gahp.rpc.types import (
    BatchDetails,
    BatchInfo,
    BatchSubmission,
    CompletedJob,
    InputFile,
    JobInfo,
    JobParams,
    JobStatus,
    JobStatuses,
    JobSubmission,
    ResultInfo,
    UploadFile,
)
from boinc_gahp.states import BatchState

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
    "Project",
    "ResultInfo",
    "UploadFile",
    "command_line",
]
