"""What goes wrong in a local project: for people, for clients of the RPCs, for jobs."""

from __future__ import annotations

import errno

from boinc_gahp.errors import GahpError

#: What to do about SQLite's errors.
_SQLITE = {
    "full": "make room there, and try again",
    "locked": "another process is writing to it: try again later",
    "readonly": "you may not write to it: use your own project, or ask who owns this one",
    "unable to open": "you may not write to its directory, or it no longer exists",
    "malformed": "the file is damaged: use a copy that you have, or a new directory",
    "not a database": "another file is in its place: use a copy that you have, or a new directory",
    "disk I/O": "the disk is full, or fails: check it, and try again",
}


class LocalProjectTrouble(GahpError):
    """The local project cannot do what was asked; the text says why."""

    code = "BG-LOCAL-PROJECT-TROUBLE"


def with_advice(error: Exception) -> str:
    """Return one of SQLite's errors with what to do about it."""
    text = str(error)
    return next((f"{text}: {words}" for part, words in _SQLITE.items() if part in text), text)


class RpcFailed(Exception):
    """The RPC answers with an ``<error>``; nearly every number is -1."""

    def __init__(self, message: str, number: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.number = number


class WorkError(RpcFailed):
    """A job cannot be made. The text says which, why, and what to do.

    Attributes:
        message: the message of the real ``create_work``, for clients of the RPC.
    """

    def __init__(self, advice: str, message: str | None = None) -> None:
        super().__init__(f"create_work failed: {advice}\n" if message is None else message)
        self.advice = advice

    def __str__(self) -> str:
        return self.advice


class PhpFatal(Exception):
    """PHP dies in the middle of the reply, with a message."""


class JobFailed(Exception):
    """The job is a client error; ``status`` is reported as its exit status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def no_space(error: OSError) -> bool:
    """Whether the disk is full, which is not the job's fault."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
