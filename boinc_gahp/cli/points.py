"""What ``check`` looks at on this machine: settings, directories, log, ledger, HTCondor."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from boinc_gahp.config import cache_dir, ledger_file, log_file
from boinc_gahp.errors import GahpError
from boinc_gahp.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.config import ProjectSettings, Settings

#: Seconds that HTCondor gives a command unless its configuration says otherwise (``gahp.md``).
CALL_TIMEOUT = 300
#: Seconds by which ``[timeouts] submit`` should stay below that.
CALL_MARGIN = 30


class Level(Enum):
    """How a point turned out; the value is the word that is shown."""

    OK = "ok"
    #: Something that cannot be told, or was not looked at.
    NOTE = "note"
    #: It works, but not as well or as safely as it should.
    WARNING = "warning"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that was looked at: how it turned out, and what there is to say or to do."""

    level: Level
    text: str


def ok(text: str) -> Point:
    """Return a point that is as it should be."""
    return Point(Level.OK, text)


def note(text: str) -> Point:
    """Return a point that says what cannot be told."""
    return Point(Level.NOTE, text)


def warning(text: str) -> Point:
    """Return a point that works, but not as it should."""
    return Point(Level.WARNING, text)


def failed(text: str) -> Point:
    """Return a point that does not work."""
    return Point(Level.FAILED, text)


def settings_points(settings: Settings) -> Iterator[Point]:
    """Look at where the settings came from; that they are right was seen when they were loaded."""
    if settings.sources:
        yield ok(f"settings: read from {', '.join(map(str, settings.sources))}")
    else:
        yield note("settings: no file was found; all is at its default")
    for problem in settings.problems:
        yield warning(f"settings: {problem}")


def chosen_project(settings: Settings, name: str | None) -> tuple[ProjectSettings | None, Point]:
    """Return the project to look at, and what is to be said of the choice."""
    if name is not None:
        project = settings.projects.get(name)
        if project is None:
            known = ", ".join(settings.projects) or "there are none"
            return None, failed(f"project: no settings file has [projects.{name}] ({known})")
        return project, ok(f"project: [projects.{name}] is {project.url}")
    if settings.project is None:
        return None, failed(
            "project: no settings file names one; put url and authenticator_file into the section "
            "[project] of ~/.config/boinc_gahp/boinc_gahp.toml (conf/boinc_gahp.toml shows how)"
        )
    return settings.project, ok(f"project: {settings.project.url}")


def directory_points(settings: Settings) -> Iterator[Point]:
    """Look whether log, ledger and cache can be written."""
    path = log_file(settings)
    if settings.logging.level == "off":
        yield note("log: off, as [logging] level says")
    else:
        yield _writable("log", path.parent, str(path), "[logging] file or [state] dir")
    yield _ledger_point(settings)
    trouble = _writable("cache", cache_dir(settings), str(cache_dir(settings)), "[state] cache_dir")
    if trouble.level is Level.FAILED:
        # Files are read again then, which only takes time.
        trouble = warning(trouble.text)
    yield trouble


def htcondor_points(settings: Settings, command: Path) -> Iterator[Point]:
    """Look whether HTCondor's configuration fits, where there is an HTCondor."""
    if shutil.which("condor_config_val") is None:
        yield note("HTCondor: condor_config_val is not on the PATH, so this was not looked at")
        return
    program = _condor_value("BOINC_GAHP")
    if program is None:
        yield failed(f"HTCondor: BOINC_GAHP is not set; set it to {command} (see conf/)")
    elif not shutil.which(program):
        yield failed(f"HTCondor: BOINC_GAHP is {program}, which is no program that can be run")
    else:
        yield ok(f"HTCondor: BOINC_GAHP is {program}")
    yield _call_timeout_point(settings.timeouts.submit)


def _call_timeout_point(submit: float) -> Point:
    text = _condor_value("GRIDMANAGER_GAHP_CALL_TIMEOUT") or str(CALL_TIMEOUT)
    if not text.isdigit():
        return warning(f"HTCondor: GRIDMANAGER_GAHP_CALL_TIMEOUT is {text}, which is no number")
    given = int(text)
    both = (
        f"HTCondor: GRIDMANAGER_GAHP_CALL_TIMEOUT is {given}, [timeouts] submit in boinc_gahp.toml "
        f"is {submit:g}"
    )
    advice = f"set submit = {given - CALL_MARGIN}"
    if submit >= given:
        return failed(f"{both}: answers come too late, and jobs are submitted twice; {advice}")
    if submit < given - 2 * CALL_MARGIN:
        return warning(f"{both}: large inputs get less time than they could; {advice}")
    return ok(both)


def _condor_value(name: str) -> str | None:
    try:
        answer = subprocess.run(
            ["condor_config_val", name], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    value = answer.stdout.strip()
    return value if answer.returncode == 0 and value else None


def _ledger_point(settings: Settings) -> Point:
    try:
        Ledger(ledger_file(settings)).close()
    except GahpError as error:
        return failed(f"ledger: {error}")
    return ok(f"ledger: {ledger_file(settings)}")


def _writable(what: str, directory: Path, shown: str, setting: str) -> Point:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        return failed(
            f"{what}: {shown} cannot be written ({error.strerror}); mend that, or set {setting}"
        )
    return ok(f"{what}: {shown}")
