"""What makes a job a client error, with the numbers of BOINC's client (``lib/error_numbers.h``)."""

from __future__ import annotations

import errno

ERR_FILE_TOO_BIG = -131
ERR_NOT_FOUND = -161
ERR_RESULT_START = -185
ERR_RESULT_DOWNLOAD = -186
ERR_RESULT_UPLOAD = -187
EXIT_DISK_LIMIT_EXCEEDED = 196
EXIT_TIME_LIMIT_EXCEEDED = 197
EXIT_MEM_LIMIT_EXCEEDED = 198


class JobFailed(Exception):
    """The job is a client error; ``status`` is reported as its exit status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def no_space(error: OSError) -> bool:
    """Whether the disk is full, which is no fault of a job's."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
