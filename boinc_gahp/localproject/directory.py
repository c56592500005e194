"""A project's directory: its contents, how it is made, and which process uses it."""

from __future__ import annotations

import fcntl
import time
from typing import TYPE_CHECKING

from boinc_gahp.files import NotOurs, make_private_directory
from boinc_gahp.localproject import accounts, new_app
from boinc_gahp.localproject.accounts import (
    SUBMITTER,
    SUBMITTER_FILE,
    USERS,
    VOLUNTEERS,
    project_url,
    remembered_url,
    write_settings,
)
from boinc_gahp.localproject.core import Core, Php, free_port
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.localproject.supplied import SUPPLIED

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

_LOCK_TIMEOUT = 1.0
_LOCK_PAUSE = 0.05
#: ``modules`` holds plug-ins (:mod:`.plugins`), ``users`` the settings files of further users.
_DIRECTORIES = ("templates", "download", "upload", "spool", "slots", "local", "modules", USERS)


def lock(directory: Path) -> TextIO:
    """Keep a second process from using the same directory, until what is returned is closed.

    The directory is made if it is new.

    Raises:
        LocalProjectTrouble: another process uses it, others can write it, or it holds something
            else, or is a file.
    """
    _make_or_check(directory)
    file = (directory / "lock").open("a")
    # When a process is killed, a job that it was starting may hold its lock a moment longer.
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                file.close()
                raise LocalProjectTrouble(
                    f"the project in {directory} is in use by another process: stop it, or "
                    "use another directory"
                ) from None
            time.sleep(_LOCK_PAUSE)
        else:
            return file


def is_project(directory: Path) -> bool:
    """Whether a directory holds a project."""
    return (directory / "project.sqlite").exists()


def _make_or_check(directory: Path) -> None:
    """Make a directory; if it holds something else, it is not touched.

    What is in it is run as this user, so nobody else may be able to write it.
    """
    if directory.exists() and not directory.is_dir():
        raise LocalProjectTrouble(f"{directory} is a file: name a new or an empty directory")
    try:
        make_private_directory(directory)
    except NotOurs as error:
        raise LocalProjectTrouble(str(error)) from error
    if not is_project(directory) and any(
        entry.name not in (*_DIRECTORIES, "lock", SUBMITTER_FILE) for entry in directory.iterdir()
    ):
        raise LocalProjectTrouble(
            f"{directory} is neither empty nor a project: name a new or an empty directory"
        )


def make(directory: Path) -> None:
    """Make a project: tables, the supplied apps, a submitter, and settings for the submitter.

    An unfinished project is completed; a finished one is not changed.

    Raises:
        LocalProjectTrouble: the directory holds something else.
    """
    _make_or_check(directory)
    for name in _DIRECTORIES:
        (directory / name).mkdir(exist_ok=True, mode=0o700)
    core = Core(directory, Php())
    try:
        connection = core.db.connection()
        present = {row["name"] for row in connection.execute("SELECT name FROM app")}
        for app in SUPPLIED:
            if app.name not in present:
                made = new_app.NewApp(app.name)
                templates = app.input_template, app.output_template
                new_app.insert(core, made, app.command, templates, description=app.description)
        users = {row["name"] for row in connection.execute("SELECT name FROM user")}
        if VOLUNTEERS not in users:
            accounts.add_user(core.db, VOLUNTEERS, access=False)
        if SUBMITTER not in users:
            accounts.add_user(core.db, SUBMITTER)
        if not all((directory / name).exists() for name in ("url", SUBMITTER_FILE)):
            write_settings(directory, connection, project_url(free_port()))
    finally:
        core.db.close()


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
        LocalProjectTrouble: there is no project in the directory, its database is of another
            version, or cannot be opened.
    """
    if not is_project(directory):
        raise LocalProjectTrouble(
            f"there is no project in {directory}: make one with boinc_gahp local-project init"
        )
    core = Core(directory, Php())
    core.url = remembered_url(directory)
    return core
