"""What keeps a job from a good end: errors, and uploads that hang."""

from __future__ import annotations

import errno


class JobFailed(Exception):
    """The job is a client error; ``status`` is reported as its exit status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class UploadHangs(Exception):
    """An output can be neither sent nor given up: the host never reports the job."""


def no_space(error: OSError) -> bool:
    """Whether the disk is full, which is not the job's fault."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
