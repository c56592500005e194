"""What each BOINC_* request does, as a sequence of web RPCs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from boinc_gahp.bridge.gate import OPEN, Gate, Stopped
from boinc_gahp.bridge.journal import Journal, Sending
from boinc_gahp.bridge.types import (
    AdFiles,
    BatchLook,
    BatchStatuses,
    Client,
    Failure,
    FetchRequest,
    FetchResult,
    File,
    InlineFile,
    Input,
    Job,
    Judgement,
    LocalFile,
    OnProgress,
    Parameters,
    Progress,
    RemoteFile,
    StagedFile,
    SubmitRequest,
)

if TYPE_CHECKING:
    from boinc_gahp.bridge.bridge import Bridge
    from boinc_gahp.bridge.fetching.fetch_output import NoResult
    from boinc_gahp.bridge.leftovers import sweep
    from boinc_gahp.bridge.temporary import NotNow, remove_all
    from boinc_gahp.templates import TemplateError

__all__ = [
    "OPEN",
    "AdFiles",
    "BatchLook",
    "BatchStatuses",
    "Bridge",
    "Client",
    "Failure",
    "FetchRequest",
    "FetchResult",
    "File",
    "Gate",
    "InlineFile",
    "Input",
    "Job",
    "Journal",
    "Judgement",
    "LocalFile",
    "NoResult",
    "NotNow",
    "OnProgress",
    "Parameters",
    "Progress",
    "RemoteFile",
    "Sending",
    "StagedFile",
    "Stopped",
    "SubmitRequest",
    "TemplateError",
    "remove_all",
    "sweep",
]

#: Names that import all of the machinery, and their modules: programs that only list batches, or
#: wait for one, do not need it.
_LATE = {
    "Bridge": "boinc_gahp.bridge.bridge",
    "NoResult": "boinc_gahp.bridge.fetching.fetch_output",
    "NotNow": "boinc_gahp.bridge.temporary",
    "TemplateError": "boinc_gahp.templates",
    "remove_all": "boinc_gahp.bridge.temporary",
    "sweep": "boinc_gahp.bridge.leftovers",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
