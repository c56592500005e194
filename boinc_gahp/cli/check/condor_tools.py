"""Information about HTCondor from its command-line tools, if they are on the PATH."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

#: Seconds that a tool may take; condor_config_val may run commands to read settings.
_TIMEOUT = 20

_VERSION = re.compile(r"\$CondorVersion: (\d+)\.(\d+)\.(\d+)")
_ROUTE = re.compile(r'^Name +: "(.*)"$', re.MULTILINE)
# Such as  # at: /etc/condor/condor_config.local, line 1  (or <Default>, <Environment>).
_DEFINED = re.compile(r"^([\w.]+) = (.*)\n # at: (.+)$", re.MULTILINE)
_DEFAULT = "<Default>"


@dataclass(frozen=True)
class Definition:
    """The definition of a setting that counts: of several, the last one that HTCondor reads.

    Attributes:
        name: of the setting, with ``MASTER.`` before it if it is for that daemon only.
        words: the words of its value, which is a list.
        place: the file and line, in HTCondor's words; None if it is not in a file.
    """

    name: str
    words: list[str]
    place: str | None


def is_here() -> bool:
    """Tell whether this machine has an HTCondor whose settings can be read."""
    return shutil.which("condor_config_val") is not None


def broken() -> str | None:
    """Return HTCondor's message if it cannot read its settings at all; None if it can."""
    answer = _run("condor_config_val", "DAEMON_LIST")
    if answer is None or answer.returncode == 0 or "Not defined" in answer.stderr:
        return None
    return " ".join(answer.stderr.split())


def silent() -> str | None:
    """Return condor_q's message if HTCondor does not answer it; None if it does."""
    answer = _run("condor_q", "-totals")
    if answer is None or answer.returncode == 0:
        return None
    return next(iter((answer.stderr.strip() or answer.stdout.strip()).splitlines()), "no words")


def version() -> tuple[int, int, int] | None:
    """Return HTCondor's version; None if unknown."""
    found = _VERSION.search(_output("condor_version") or "")
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def value(name: str) -> str | None:
    """Return a setting, expanded; None if it is undefined or empty."""
    return (_output("condor_config_val", name) or "").strip() or None


def names(name: str) -> list[str]:
    """Return the words of a setting that is a list."""
    return _words(value(name) or "")


def definition(name: str, subsystem: str = "TOOL") -> Definition:
    """Return the value of a list setting, as HTCondor or one of its daemons reads it."""
    command = ("condor_config_val", "-subsystem", subsystem, "-verbose", name)
    found = _DEFINED.search(_output(*command) or "")
    if found is None:
        return Definition(name, names(name), None)
    place = None if found[3] == _DEFAULT else found[3]
    return Definition(found[1], _words(found[2]), place)


def family(prefix: str) -> dict[str, str]:
    """Return the settings whose names begin with ``prefix``, by the rest of their names."""
    dumped = _output("condor_config_val", "-dump", f"^{prefix}") or ""
    known = re.findall(rf"^{prefix}(\w+) @?=", dumped, re.IGNORECASE | re.MULTILINE)
    return {each: value(f"{prefix}{each}") or "" for each in known}


def accepted_routes() -> list[str] | None:
    """Return the Job Router's routes as HTCondor understands its settings; None if unknown.

    It leaves out a route with a mistake in it, without any message (seen with 23.9.6).
    """
    output = _output("condor_job_router_info", "-config")
    return None if output is None else _ROUTE.findall(output)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


def _output(*command: str) -> str | None:
    answer = _run(*command)
    return answer.stdout if answer is not None and answer.returncode == 0 else None


def _run(*command: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            command, capture_output=True, timeout=_TIMEOUT, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
