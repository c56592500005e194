"""The error with which a local project tells what it cannot do."""

from __future__ import annotations

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
