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

#: The user whose authenticator is in ``boinc_gahp.toml``.
SUBMITTER = "submitter"
SUBMITTER_FILE = "boinc_gahp.toml"
#: The other users' files are ``<name>.toml`` in this directory.
USERS = "users"

_ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104
_MARK = "# Written by boinc_gahp local-project; it is written again when the address changes.\n"


def settings_path(directory: Path, user_name: str) -> Path:
    """Return the path of a user's settings file."""
    if user_name == SUBMITTER:
        return directory / SUBMITTER_FILE
    return directory / USERS / f"{user_name}.toml"


def write_settings(directory: Path, connection: sqlite3.Connection, url: str) -> None:
    """Store the project's address, and write all existing settings files of users anew.

    The submitter's is made if it is missing. A file that someone has edited is not changed.
    """
    write_whole(directory / "url", f"{url}\n")
    more = _app_lines(connection)
    for row in connection.execute("SELECT name, authenticator FROM user ORDER BY id"):
        path = settings_path(directory, row["name"])
        if row["name"] == SUBMITTER or path.exists():
            _write(path, url, row["authenticator"], more)


def add_settings(directory: Path, connection: sqlite3.Connection, user_name: str) -> Path:
    """Write a settings file (mode 0600) for a user and return its path."""
    path = settings_path(directory, user_name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    row = connection.execute(
        "SELECT authenticator FROM user WHERE name = ?", (user_name,)
    ).fetchone()
    _write(path, remembered_url(directory), row["authenticator"], _app_lines(connection))
    return path


def _app_lines(connection: sqlite3.Connection) -> list[str]:
    """Return the line about the first app for jobs in containers, if there is one."""
    apps = [app for app in container_apps(connection) if app != BUDA]
    return [f"container_app = {json.dumps(app)}\n" for app in apps[:1]]


def _write(path: Path, url: str, authenticator: str, more: Iterable[str]) -> None:
    if path.exists() and not path.read_text("utf-8", "replace").startswith(_MARK):
        return
    text = (
        f"{_MARK}[project]\nurl = {json.dumps(url)}\nauthenticator = {json.dumps(authenticator)}\n"
    )
    write_whole(path, "".join([text, *more]), 0o600)


def remembered_url(directory: Path) -> str:
    """Return the address that the project had last."""
    return (directory / "url").read_text("utf-8").strip()


def project_url(port: int, host: str = HOST) -> str:
    """Return the address of a project that listens on a port of an address of this machine."""
    if host in _ANYWHERE:
        host = HOST
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/test/"
