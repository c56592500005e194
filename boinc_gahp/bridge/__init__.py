"""What each BOINC_* request does, as a sequence of web RPCs."""

from boinc_gahp.bridge.bridge import Bridge
from boinc_gahp.bridge.fetch import NoResult
from boinc_gahp.bridge.gate import OPEN, EventGate, Gate, Stopped
from boinc_gahp.bridge.temporary import NotNow, remove_all, sweep
from boinc_gahp.bridge.types import (
    AdFiles,
    BatchLook,
    BatchStatuses,
    Client,
    Failure,
    FetchRequest,
    FetchResult,
    InlineInput,
    Input,
    JobRequest,
    Judgement,
    LocalInput,
    OnProgress,
    Progress,
    RemoteInput,
    StagedInput,
    SubmitRequest,
)
from boinc_gahp.templates import TemplateError

__all__ = [
    "OPEN",
    "AdFiles",
    "BatchLook",
    "BatchStatuses",
    "Bridge",
    "Client",
    "EventGate",
    "Failure",
    "FetchRequest",
    "FetchResult",
    "Gate",
    "InlineInput",
    "Input",
    "JobRequest",
    "Judgement",
    "LocalInput",
    "NoResult",
    "NotNow",
    "OnProgress",
    "Progress",
    "RemoteInput",
    "StagedInput",
    "Stopped",
    "SubmitRequest",
    "TemplateError",
    "remove_all",
    "sweep",
]
