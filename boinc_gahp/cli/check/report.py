"""``check --report``: one text for whoever looks for a fault; a person reads it before sending it.

Settings are shown as they were understood, not as the files have them, and all of the text passes
the log's filter of secrets.
"""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from boinc_gahp import __version__
from boinc_gahp.config.layers import load
from boinc_gahp.config.places import log_file
from boinc_gahp.errors import ConfigError
from boinc_gahp.files import open_private_file
from boinc_gahp.logs import redact
from boinc_gahp.terminal.words import at
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from boinc_gahp.config.settings import Settings

#: What the report has of the log, at most.
_LINES, _BYTES = 200, 1 << 16

_HEAD = """\
A report of boinc_gahp check, {time}. Read it before you send it: it names directories, users and
computers. Authenticators, and names and passwords in addresses, are left out.
"""


def write(path: Path, config: str | None, points: Sequence[str], now: float) -> None:
    """Write a new file, which only this user can read.

    Args:
        path: the file.
        config: the settings file to read last.
        points: what was checked, with the outcome.
        now: the time.

    Raises:
        ConfigError: it cannot be written.
    """
    parts = {"Versions": _versions(), "Checks": points}
    # Settings that cannot be read are one of the points.
    with suppress(ConfigError):
        settings = load(config)
        parts |= {"Settings": _settings(settings), "Log": _last_lines(log_file(settings))}
    text = _HEAD.format(time=at(now))
    for title, lines in parts.items():
        text += f"\n{title}\n{'-' * len(title)}\n" + "".join(f"{visible(each)}\n" for each in lines)
    try:
        descriptor = open_private_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(redact(text))
    except OSError as error:
        raise ConfigError(f"the report {path} cannot be written: {error.strerror}") from error


def _versions() -> Iterator[str]:
    yield f"boinc_gahp {__version__}"
    yield f"Python {platform.python_version()}"
    yield f"SQLite {sqlite3.sqlite_version}"
    system = os.uname()
    yield f"{system.sysname} {system.release} {system.machine}"
    with suppress(OSError):
        yield platform.freedesktop_os_release()["PRETTY_NAME"]
    needed = "\n".join(metadata.requires("boinc_gahp") or ())
    # What is only for tests and documentation tells nothing.
    names = re.findall(r"^([\w.-]+)(?!.*extra == .(?:docs|test))", needed, re.MULTILINE)
    for name in dict.fromkeys(names):
        with suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"


def _settings(settings: Settings) -> Iterator[str]:
    """Yield each setting; an :class:`Authenticator` shows only that there is one."""
    tables = {each.name: getattr(settings, each.name) for each in fields(settings)}
    tables |= {f"projects.{name}": project for name, project in settings.projects.items()}
    for title, table in tables.items():
        for each in fields(table) if is_dataclass(table) else ():
            yield f"[{title}] {each.name} = {getattr(table, each.name)}"


def _last_lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - _BYTES)
            file.seek(start)
            # The first line may not be whole.
            lines = file.read().decode("utf-8", "replace").splitlines()[bool(start) :]
    except OSError as error:
        return [f"{path}: {error.strerror}"]
    return lines[-_LINES:]
