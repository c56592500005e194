"""Calls of Python functions on volunteers' computers: what is sent, and how values come back.

``payload`` makes the files and the command line of a call: the function and its arguments are
pickled by cloudpickle, and ``fingerprint`` recognizes them when the same program runs again.
``runner`` is the program that runs the call in a container. ``values`` reads what it wrote. Results
come from computers of strangers, so nothing of them is ever unpickled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.functions.payload import (
        MOST_INLINE as MOST_INLINE,
        PROGRAM as PROGRAM,
        PYTHON as PYTHON,
        CallPayload as CallPayload,
        FunctionPayload as FunctionPayload,
        pack_call as pack_call,
        pack_function as pack_function,
        shared_files as shared_files,
        words as words,
    )
    from boinc_gahp.functions.runner import RESULT as RESULT, RETURNED as RETURNED
    from boinc_gahp.functions.values import (
        MOST_FILE_BYTES as MOST_FILE_BYTES,
        Raised as Raised,
        WrongResult as WrongResult,
        read_result as read_result,
    )

__getattr__, __dir__ = exports(
    __name__,
    {
        "payload": [
            "MOST_INLINE",
            "PROGRAM",
            "PYTHON",
            "CallPayload",
            "FunctionPayload",
            "pack_call",
            "pack_function",
            "shared_files",
            "words",
        ],
        "runner": ["RESULT", "RETURNED"],
        "values": ["MOST_FILE_BYTES", "Raised", "WrongResult", "read_result"],
    },
)
