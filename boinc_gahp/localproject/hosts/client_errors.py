"""Errors that make a job a client error."""

from __future__ import annotations

import errno


class JobFailed(Exception):
    """The job is a client error; ``status`` is reported as its exit status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def no_space(error: OSError) -> bool:
    """Whether the disk is full, which is not the job's fault."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
