"""What each BOINC_* request does, as a sequence of web RPCs."""

from boinc_gahp.bridge.bridge import Bridge
from boinc_gahp.bridge.temporary import remove_all
from boinc_gahp.bridge.types import (
    BatchStatuses,
    Client,
    FetchRequest,
    FetchResult,
    JobRequest,
    LocalInput,
    SubmitRequest,
)

__all__ = [
    "BatchStatuses",
    "Bridge",
    "Client",
    "FetchRequest",
    "FetchResult",
    "JobRequest",
    "LocalInput",
    "SubmitRequest",
    "remove_all",
]
