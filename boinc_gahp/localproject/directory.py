"""A project's directory: what is in it, how it is made, and who uses it now."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import TYPE_CHECKING

from ..templates import InputTemplate, OutputTemplate, write_input_template, write_output_template
from . import accounts
from .database import Database
from .server import free_port
from .supplied import SUPPLIED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: The user whose authenticator ``boinc_gahp.toml`` holds.
SUBMITTER = "submitter"
#: The user whom the volunteers' credit goes to.
VOLUNTEERS = "volunteers"

_LOCK_TIMEOUT = 1.0
_LOCK_PAUSE = 0.05
_SETTINGS = "boinc_gahp.toml"
_DIRECTORIES = ("templates", "download", "upload", "spool", "slots", "local")
_MARK = "# Written by boinc_gahp local-project; it is written again when the port changes.\n"


class ProjectDirectoryError(Exception):
    """The directory cannot be used; the text says why and what to do."""


class DirectoryLock:
    """Keeps a second process from using the same directory.

    Raises:
        ProjectDirectoryError: another process uses it.
    """

    def __init__(self, directory: Path) -> None:
        self._file = (directory / "lock").open("a")
        # A job that was being started when a process was killed may hold its lock a moment longer.
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while not self._acquired():
            if time.monotonic() > deadline:
                self._file.close()
                raise ProjectDirectoryError(
                    f"the project in {directory} is in use by another process: stop that one, or "
                    "use another directory"
                )
            time.sleep(_LOCK_PAUSE)

    def _acquired(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Let others use the directory."""
        self._file.close()


def is_project(directory: Path) -> bool:
    """Whether a directory holds a project."""
    return (directory / "project.sqlite").exists()


def make(directory: Path) -> None:
    """Make a project: tables, the supplied apps, a submitter, and settings for the submitter.

    An unfinished one is completed; in a finished one nothing changes.

    Raises:
        ProjectDirectoryError: the directory holds something else.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_project(directory) and any(
        entry.name not in (*_DIRECTORIES, "lock", _SETTINGS) for entry in directory.iterdir()
    ):
        raise ProjectDirectoryError(
            f"{directory} is neither empty nor a project: name a new or an empty directory"
        )
    for name in _DIRECTORIES:
        (directory / name).mkdir(exist_ok=True)
    database = Database(directory / "project.sqlite")
    try:
        connection = database.connection()
        present = {row["name"] for row in connection.execute("SELECT name FROM app")}
        for app in SUPPLIED:
            if app.name not in present:
                add_app(
                    directory,
                    database,
                    app.name,
                    command=app.command,
                    input_template=app.input_template,
                    output_template=app.output_template,
                    description=app.description,
                )
        users = {row["name"] for row in connection.execute("SELECT name FROM user")}
        if VOLUNTEERS not in users:
            accounts.add_user(database, VOLUNTEERS, access=False)
        if SUBMITTER not in users:
            accounts.add_user(database, SUBMITTER)
        if not (directory / _SETTINGS).exists():
            write_settings(directory, database, free_port())
    finally:
        database.close()


def add_app(
    directory: Path,
    database: Database,
    name: str,
    *,
    command: Sequence[str],
    input_template: InputTemplate | str,
    output_template: OutputTemplate | str,
    description: str = "",
    version: int = 100,
) -> None:
    """Add an app; templates that are given as text are written as they are.

    Raises:
        ValueError: the name is taken or no file name.
        TemplateError: a template cannot be written.
    """
    if not name or "/" in name or name.startswith("."):
        raise ValueError(f"an app cannot be named {name!r}: expected a name without slashes")
    texts = {
        "in": input_template
        if isinstance(input_template, str)
        else write_input_template(input_template),
        "out": output_template
        if isinstance(output_template, str)
        else write_output_template(output_template),
    }
    for kind, text in texts.items():
        (directory / "templates" / f"{name}_{kind}").write_text(text, "utf-8")
    with database.write() as connection:
        if connection.execute("SELECT 1 FROM app WHERE name = ?", (name,)).fetchone():
            raise ValueError(f"there is an app {name!r} already")
        cursor = connection.execute(
            "INSERT INTO app (create_time, name, user_friendly_name) VALUES (?, ?, ?)",
            (time.time(), name, description),
        )
        connection.execute(
            "INSERT INTO app_version (create_time, appid, version_num, command) "
            "VALUES (?, ?, ?, ?)",
            (time.time(), cursor.lastrowid, version, json.dumps(list(command))),
        )


def remembered_port(directory: Path) -> int:
    """Return the port that the settings name, 0 if there is none."""
    try:
        text = (directory / "port").read_text("ascii")
        return int(text)
    except (OSError, ValueError):
        return 0


def write_settings(directory: Path, database: Database, port: int) -> None:
    """Write ``boinc_gahp.toml`` (mode 0600) for the submitter, unless someone has edited it."""
    path = directory / _SETTINGS
    (directory / "port").write_text(f"{port}\n", "ascii")
    if path.exists() and not path.read_text("utf-8").startswith(_MARK):
        return
    row = (
        database.connection()
        .execute("SELECT authenticator FROM user WHERE name = ?", (SUBMITTER,))
        .fetchone()
    )
    text = (
        f"{_MARK}[project]\nurl = {json.dumps(project_url(port))}\n"
        f"authenticator = {json.dumps(row['authenticator'])}\n"
    )
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def project_url(port: int) -> str:
    """Return the address of a project that listens on a port."""
    return f"http://127.0.0.1:{port}/test/"
