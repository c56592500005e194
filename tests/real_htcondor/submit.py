"""Submit files' texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def grid(app: str, *lines: str, queue: str = "queue") -> str:
    """Return a job for the grid universe, with more lines of a submit file."""
    return _job(
        "universe = grid",
        "grid_resource = batch boinc",
        f'+remote_BoincApp = "{app}"',
        f"executable = {app}",
        *lines,
        queue=queue,
    )


def vanilla(app: str, *lines: str, queue: str = "queue") -> str:
    """Return an ordinary job that the Job Router is to send."""
    return _job(
        "universe = vanilla",
        f'+BoincApp = "{app}"',
        f"executable = {app}",
        "should_transfer_files = yes",
        "when_to_transfer_output = on_exit",
        *lines,
        queue=queue,
    )


def _job(*lines: str, queue: str) -> str:
    return "\n".join([*lines, "transfer_executable = false", "log = job.log", queue, ""])


def words(arguments: Sequence[str]) -> str:
    """Return the line that gives a job these arguments (V2 syntax)."""
    return f"arguments = {_quoted(arguments)}"


def environment(variables: Mapping[str, str]) -> str:
    """Return the line that gives a job these variables."""
    return f"environment = {_quoted([f'{name}={value}' for name, value in variables.items()])}"


def _quoted(texts: Sequence[str]) -> str:
    quoted = " ".join("'{}'".format(text.replace("'", "''")) for text in texts)
    # What looks like a macro is none.
    return '"{}"'.format(quoted.replace('"', '""').replace("$(", "$(DOLLAR)("))
