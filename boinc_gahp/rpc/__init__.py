"""A BOINC project's web RPCs, the layer below the Python API for remote job submission.

::

    with WebRpcs("https://boinc.example.edu/test/", authenticator) as project:
        for batch in project.query_batches():
            print(batch.name, batch.state.name, batch.njobs)
"""

import warnings
from typing import Any

from boinc_gahp.rpc import types
from boinc_gahp.rpc.client import WebRpcs
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
    "ResultInfo",
    "UploadFile",
    "WebRpcs",
    "command_line",
]

#: Names that classes had in 0.1.
_RENAMED = {
    "Batch": types.BatchInfo,
    "BatchJob": types.JobInfo,
    "Instance": types.ResultInfo,
    "Job": types.JobSubmission,
    "Project": WebRpcs,
}


def __getattr__(name: str) -> Any:
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    renamed = _RENAMED[name]
    warnings.warn(
        f"{__name__}.{name} is called {renamed.__name__} now; the next version drops the old name",
        DeprecationWarning,
        stacklevel=2,
    )
    return renamed
