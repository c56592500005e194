"""The values that BOINC keeps in its database (``back-end.rst``, "Entities")."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class BatchState(IntEnum):
    """``batch.state``."""

    INIT = 0
    IN_PROGRESS = 1
    COMPLETE = 2
    ABORTED = 3
    RETIRED = 4


class ServerState(IntEnum):
    """``result.server_state``."""

    UNSENT = 2
    IN_PROGRESS = 4
    OVER = 5


class Outcome(IntEnum):
    """``result.outcome``; INIT until the result is over."""

    INIT = 0
    SUCCESS = 1
    COULDNT_SEND = 2
    CLIENT_ERROR = 3
    NO_REPLY = 4
    DIDNT_NEED = 5
    VALIDATE_ERROR = 6
    CLIENT_DETACHED = 7


class ValidateState(IntEnum):
    """``result.validate_state``."""

    INIT = 0
    VALID = 1
    INVALID = 2
    NO_CHECK = 3
    INCONCLUSIVE = 4
    TOO_LATE = 5


class ErrorMask(IntFlag):
    """``workunit.error_mask``."""

    COULDNT_SEND_RESULT = 1
    TOO_MANY_ERROR_RESULTS = 2
    TOO_MANY_SUCCESS_RESULTS = 4
    TOO_MANY_TOTAL_RESULTS = 8
    CANCELLED = 16
    NO_CANONICAL_RESULT = 32


class AssimilateState(IntEnum):
    """``workunit.assimilate_state``."""

    INIT = 0
    READY = 1
    DONE = 2


class FileDeleteState(IntEnum):
    """``file_delete_state`` of workunits and results."""

    INIT = 0
    READY = 1
    DONE = 2
    ERROR = 3


#: ``workunit.transition_time`` of a workunit that needs no more transitions.
NEVER = 2**31 - 1

#: query_batch's words for the bits of error_mask.
ERROR_WORDS = {bit: str(bit.name).lower() for bit in ErrorMask}
