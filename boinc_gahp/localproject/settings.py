"""The settings files that a project writes for its users, and the address in them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from boinc_gahp.files import write_whole
from boinc_gahp.localproject.hosts.engine import BUDA, container_apps
from boinc_gahp.localproject.server.addresses import HOST

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

    from boinc_gahp.localproject.database import Database

#: The user whose authenticator is in ``boinc_gahp.toml``.
SUBMITTER = "submitter"
SUBMITTER_FILE = "boinc_gahp.toml"
#: The other users' files are ``<name>.toml`` in this directory.
USERS = "users"

_CONTAINER_APP = "container_app"
_ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104
_MARK = "# Written by boinc_gahp local-project; it is written again when the port changes.\n"


def settings_path(directory: Path, user_name: str) -> Path:
    """Return the path of a user's settings file."""
    if user_name == SUBMITTER:
        return directory / SUBMITTER_FILE
    return directory / USERS / f"{user_name}.toml"


def write_settings(directory: Path, database: Database, port: int, host: str = HOST) -> None:
    """Store the address, and write it into all existing settings files of users.

    The submitter's is made if it is missing. A file that someone has edited is not changed.
    """
    write_whole(directory / "port", f"{port}\n")
    url = project_url(port, host)
    connection = database.connection()
    more = _app_lines(connection)
    for row in connection.execute("SELECT name, authenticator FROM user ORDER BY id"):
        path = settings_path(directory, row["name"])
        if row["name"] == SUBMITTER or path.exists():
            _write(path, url, row["authenticator"], more)


def name_container_app(directory: Path, app_name: str) -> None:
    """Name an app for jobs in containers in all settings files that name none, unless edited."""
    for path in (directory / SUBMITTER_FILE, *(directory / USERS).glob("*.toml")):
        text = path.read_text("utf-8", "replace")
        if text.startswith(_MARK) and f"\n{_CONTAINER_APP} " not in text:
            write_whole(path, text + _container_line(app_name), 0o600)


def add_settings(directory: Path, connection: sqlite3.Connection, user_name: str) -> Path:
    """Write a settings file (mode 0600) for a user and return its path."""
    path = settings_path(directory, user_name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    row = connection.execute(
        "SELECT authenticator FROM user WHERE name = ?", (user_name,)
    ).fetchone()
    more = _app_lines(connection)
    _write(path, project_url(remembered_port(directory)), row["authenticator"], more)
    return path


def _app_lines(connection: sqlite3.Connection) -> list[str]:
    """Return the line about the first app for jobs in containers, if there is one."""
    apps = [app for app in container_apps(connection) if app != BUDA]
    return [*map(_container_line, apps[:1])]


def _container_line(app_name: str) -> str:
    return f"{_CONTAINER_APP} = {json.dumps(app_name)}\n"


def _write(path: Path, url: str, authenticator: str, more: Iterable[str]) -> None:
    if path.exists() and not path.read_text("utf-8", "replace").startswith(_MARK):
        return
    text = (
        f"{_MARK}[project]\nurl = {json.dumps(url)}\nauthenticator = {json.dumps(authenticator)}\n"
    )
    write_whole(path, "".join([text, *more]), 0o600)


def remembered_port(directory: Path) -> int:
    """Return the port on which the project last listened, 0 if there is none."""
    try:
        text = (directory / "port").read_text("ascii")
        return int(text)
    except (OSError, ValueError):
        return 0


def project_url(port: int, host: str = HOST) -> str:
    """Return the address of a project that listens on a port of an address of this machine."""
    if host in _ANYWHERE:
        host = HOST
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/test/"
