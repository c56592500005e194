"""Who may do what: ``user``, ``user_submit`` and ``user_submit_app``."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .names import name_key
from .replies import RpcFailed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from .database import Database


@dataclass(frozen=True, slots=True)
class App:
    """An app."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class User:
    """A user who may use the RPCs; ``max_jobs_in_progress`` 0 is no limit."""

    id: int
    name: str
    submit_all: bool
    max_jobs_in_progress: int


def find_app(connection: sqlite3.Connection, name: str) -> App:
    """Return an app by name; the real server looks for it before it looks at the user."""
    for row in connection.execute("SELECT id, name FROM app WHERE deprecated = 0"):
        if name_key(row["name"]) == name_key(name):
            return App(row["id"], row["name"])
    raise RpcFailed(f"app not found: {name}")


def authenticate(
    connection: sqlite3.Connection, authenticator: str, app: App | None = None
) -> User:
    """Return the user of an authenticator, who must have rights for ``app`` if there is one."""
    if not authenticator:
        raise RpcFailed("no authenticator")
    row = connection.execute(
        "SELECT u.id, u.name, s.user_id, s.submit_all, s.max_jobs_in_progress FROM user u "
        "LEFT JOIN user_submit s ON s.user_id = u.id WHERE u.authenticator = ?",
        (authenticator,),
    ).fetchone()
    if row is None:
        raise RpcFailed("bad authenticator")
    if row["user_id"] is None:
        raise RpcFailed("no file access" if app is None else "no submit access")
    user = User(row["id"], row["name"], bool(row["submit_all"]), row["max_jobs_in_progress"])
    if app is not None and not user.submit_all:
        right = connection.execute(
            "SELECT 1 FROM user_submit_app WHERE user_id = ? AND app_id = ?", (user.id, app.id)
        ).fetchone()
        if right is None:
            raise RpcFailed("no submit access")
    return user


def add_user(
    database: Database,
    name: str,
    *,
    access: bool = True,
    submit_all: bool = True,
    apps: Iterable[str] = (),
    max_jobs_in_progress: int = 0,
    authenticator: str | None = None,
) -> str:
    """Add a user and return the authenticator.

    Without ``access`` the user has an account but no row in ``user_submit``.

    Raises:
        ValueError: the name is taken, or an app does not exist.
    """
    authenticator = authenticator or secrets.token_hex(16)
    with database.write() as connection:
        if connection.execute("SELECT 1 FROM user WHERE name = ?", (name,)).fetchone():
            raise ValueError(f"there is a user {name!r} already")
        cursor = connection.execute(
            "INSERT INTO user (create_time, name, authenticator) VALUES (?, ?, ?)",
            (time.time(), name, authenticator),
        )
        if access:
            connection.execute(
                "INSERT INTO user_submit (user_id, submit_all, max_jobs_in_progress) "
                "VALUES (?, ?, ?)",
                (cursor.lastrowid, int(submit_all and not tuple(apps)), max_jobs_in_progress),
            )
        for app_name in apps:
            try:
                app = find_app(connection, app_name)
            except RpcFailed as error:
                raise ValueError(str(error)) from error
            connection.execute(
                "INSERT INTO user_submit_app (user_id, app_id) VALUES (?, ?)",
                (cursor.lastrowid, app.id),
            )
    return authenticator
