"""A project's directory: its contents, how it is made, and which process uses it."""

from __future__ import annotations

import fcntl
import json
import time
from typing import TYPE_CHECKING

from boinc_gahp.files import write_whole
from boinc_gahp.localproject import accounts, buda
from boinc_gahp.localproject.core import Core
from boinc_gahp.localproject.database import Database
from boinc_gahp.localproject.hosts.engine import BUDA, CONTAINERS
from boinc_gahp.localproject.php import Php
from boinc_gahp.localproject.server.addresses import free_port
from boinc_gahp.localproject.settings import (
    SUBMITTER,
    SUBMITTER_FILE,
    USERS,
    name_container_app,
    project_url,
    remembered_port,
    write_settings,
)
from boinc_gahp.localproject.supplied import SUPPLIED, WRAPPER
from boinc_gahp.templates.types import InputTemplate, OutputTemplate
from boinc_gahp.templates.writing import write_input_template, write_output_template

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

    from boinc_gahp.localproject.buda import BudaApp

__all__ = [
    "SUBMITTER",
    "VOLUNTEERS",
    "DirectoryLock",
    "ProjectDirectoryError",
    "add_app",
    "add_app_version",
    "add_buda_app",
    "add_container_app",
    "is_project",
    "is_running",
    "make",
    "open_core",
]

#: The user who gets the volunteers' credit.
VOLUNTEERS = "volunteers"

_LOCK_TIMEOUT = 1.0
_LOCK_PAUSE = 0.05
#: ``modules`` holds plug-ins (:mod:`.plugins`), ``users`` the settings files of further users.
_DIRECTORIES = (
    "templates",
    "download",
    "upload",
    "spool",
    "slots",
    "local",
    "modules",
    USERS,
)


class ProjectDirectoryError(Exception):
    """The directory cannot be used; the text says why and what to do."""


class DirectoryLock:
    """Keeps a second process from using the same directory; makes the directory if it is new.

    Raises:
        ProjectDirectoryError: another process uses it, or it holds something else, or is a file.
    """

    def __init__(self, directory: Path) -> None:
        _make_or_check(directory)
        self._file = (directory / "lock").open("a")
        # When a process is killed, a job that it was starting may hold its lock a moment longer.
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while not self._acquired():
            if time.monotonic() > deadline:
                self._file.close()
                raise ProjectDirectoryError(
                    f"the project in {directory} is in use by another process: stop it, or "
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


def _make_or_check(directory: Path) -> None:
    """Make a directory; if it holds something else, it is not touched."""
    if directory.exists() and not directory.is_dir():
        raise ProjectDirectoryError(f"{directory} is a file: name a new or an empty directory")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_project(directory) and any(
        entry.name not in (*_DIRECTORIES, "lock", SUBMITTER_FILE) for entry in directory.iterdir()
    ):
        raise ProjectDirectoryError(
            f"{directory} is neither empty nor a project: name a new or an empty directory"
        )


def make(directory: Path) -> None:
    """Make a project: tables, the supplied apps, a submitter, and settings for the submitter.

    An unfinished project is completed; a finished one is not changed.

    Raises:
        ProjectDirectoryError: the directory holds something else.
    """
    _make_or_check(directory)
    for name in _DIRECTORIES:
        (directory / name).mkdir(exist_ok=True, mode=0o700 if name == USERS else 0o777)
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
        if not (directory / SUBMITTER_FILE).exists():
            write_settings(directory, database, free_port())
    finally:
        database.close()


def add_app(
    directory: Path,
    database: Database,
    name: str,
    *,
    command: Sequence[str],
    input_template: InputTemplate | str | None,
    output_template: OutputTemplate | str | None,
    description: str = "",
    version: int = 100,
    validator: str = "trivial",
    assimilator: str = "",
    work_generator: str = "",
    work_low: int = 10,
    n_size_classes: int = 0,
    plan_class: str = "",
) -> None:
    """Add an app; templates given as text are written unchanged.

    Without a template (None), each job has to bring its own. ``plan_class`` is the version's.
    ``validator``, ``assimilator`` and ``work_generator`` are read by :mod:`.plugins`; the generator
    is asked for jobs while fewer than ``work_low`` results are unsent.

    Raises:
        ValueError: the name is taken or not a file name.
        TemplateError: a template cannot be written.
    """
    if not name or "/" in name or name.startswith("."):
        raise ValueError(f"an app cannot be named {name!r}: expected a name without slashes")
    if isinstance(input_template, InputTemplate):
        input_template = write_input_template(input_template)
    if isinstance(output_template, OutputTemplate):
        output_template = write_output_template(output_template)
    texts = {"in": input_template, "out": output_template}
    settings = {
        "name": name,
        "user_friendly_name": description,
        "validator": validator,
        "assimilator": assimilator,
        "work_generator": work_generator,
        "work_low": work_low,
        "n_size_classes": n_size_classes,
    }
    with database.write() as connection:
        if connection.execute("SELECT 1 FROM app WHERE name = ?", (name,)).fetchone():
            raise ValueError(f"there is an app {name!r} already")
        cursor = connection.execute(
            f"INSERT INTO app (create_time, {', '.join(settings)}) "  # noqa: S608
            f"VALUES (?{', ?' * len(settings)})",
            (time.time(), *settings.values()),
        )
        _insert_version(connection, cursor.lastrowid or 0, version, command, plan_class)
        for kind, text in texts.items():
            if text is not None:
                write_whole(directory / "templates" / f"{name}_{kind}", text)


def add_container_app(
    directory: Path,
    database: Database,
    name: str,
    *,
    version: int = 100,
    validator: str = "trivial",
    assimilator: str = "",
) -> None:
    """Add an app for jobs of any program, in containers, like :func:`add_app`.

    It has no templates: one called NAME_in would apply to every job.
    """
    add_app(
        directory,
        database,
        name,
        command=WRAPPER,
        input_template=None,
        output_template=None,
        description="any program, in a container that each job describes",
        version=version,
        validator=validator,
        assimilator=assimilator,
        plan_class=CONTAINERS,
    )
    name_container_app(directory, database, name)


def add_buda_app(core: Core, app: BudaApp) -> list[Path]:
    """Add a BUDA app, and the app to which all of them belong if it is missing.

    Returns:
        The files that were written.

    Raises:
        ValueError: there is one of this name, or a name is wrong; nothing was changed.
        OSError: a file cannot be read.
    """
    connection = core.db.connection()
    written = buda.add(core, app)
    if not connection.execute("SELECT 1 FROM app WHERE name = ?", (BUDA,)).fetchone():
        add_app(
            core.directory,
            core.db,
            BUDA,
            command=WRAPPER,
            input_template=None,
            output_template=None,
            description="BUDA apps, in containers",
            plan_class=CONTAINERS,
        )
    return written


def add_app_version(database: Database, name: str, version: int, command: Sequence[str]) -> None:
    """Add another version of an app; hosts run the newest unless a job wants another.

    Raises:
        ValueError: there is no such app, or it has that version.
    """
    with database.write() as connection:
        app = connection.execute("SELECT id FROM app WHERE name = ?", (name,)).fetchone()
        if app is None:
            raise ValueError(f"there is no app {name!r}")
        row = connection.execute(
            "SELECT group_concat(version_num, ', ') AS present, total(version_num = ?) AS taken "
            "FROM app_version WHERE appid = ?",
            (version, app["id"]),
        ).fetchone()
        if row["taken"]:
            raise ValueError(
                f"app {name!r} has a version {version} already (it has {row['present']}): give "
                "another number"
            )
        _insert_version(connection, app["id"], version, command)


def _insert_version(
    connection: sqlite3.Connection,
    app_id: int,
    version: int,
    command: Sequence[str],
    plan_class: str = "",
) -> None:
    connection.execute(
        "INSERT INTO app_version (create_time, appid, version_num, command, plan_class) "
        "VALUES (?, ?, ?, ?, ?)",
        (time.time(), app_id, version, json.dumps(list(command)), plan_class),
    )


def is_running(directory: Path) -> bool:
    """Whether a process is running the project."""
    try:
        with (directory / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def open_core(directory: Path) -> Core:
    """Return the core of a project that may be running, for a command; close its ``db`` at the end.

    Raises:
        ProjectDirectoryError: there is no project in the directory.
        DatabaseError: the database was of another version, or cannot be opened.
    """
    if not is_project(directory):
        raise ProjectDirectoryError(
            f"there is no project in {directory}: make one with boinc_gahp local-project init"
        )
    core = Core(directory, Php())
    core.url = project_url(remembered_port(directory))
    return core
