"""Users: their rights, their logins, and the settings files that the project writes for them."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from typing import TYPE_CHECKING

from boinc_gahp.files import write_whole
from boinc_gahp.localproject.core import HOST, name_key
from boinc_gahp.localproject.errors import RpcFailed
from boinc_gahp.localproject.hosts.engine import BUDA, container_apps
from boinc_gahp.localproject.states import ServerState

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from pathlib import Path

    from boinc_gahp.localproject.core import Database


_EMAIL = re.compile(r"[!-?A-~]+@[!-?A-~]+")


def find_app(connection: sqlite3.Connection, name: str) -> sqlite3.Row:
    """Return an app by name; the real server looks for it before it looks at the user."""
    row: sqlite3.Row
    for row in connection.execute("SELECT id, name FROM app WHERE deprecated = 0"):
        if name_key(row["name"]) == name_key(name):
            return row
    raise RpcFailed(f"app not found: {name}")


def authenticate(
    connection: sqlite3.Connection, authenticator: str, app: sqlite3.Row | None = None
) -> sqlite3.Row:
    """Return the user with an authenticator; the user must have rights for ``app`` if given."""
    if not authenticator:
        raise RpcFailed("no authenticator")
    user: sqlite3.Row | None = connection.execute(
        "SELECT u.id, u.name, s.user_id, s.submit_all, s.max_jobs_in_progress "
        "FROM user u LEFT JOIN user_submit s ON s.user_id = u.id WHERE u.authenticator = ?",
        (authenticator,),
    ).fetchone()
    if user is None:
        raise RpcFailed("bad authenticator")
    if user["user_id"] is None:
        raise RpcFailed("no file access" if app is None else "no submit access")
    query = "SELECT 1 FROM user_submit_app WHERE user_id = ? AND app_id = ?"
    if (
        app is not None
        and not user["submit_all"]
        and connection.execute(query, (user["id"], app["id"])).fetchone() is None
    ):
        raise RpcFailed("no submit access")
    return user


def by_email(connection: sqlite3.Connection, email: str) -> sqlite3.Row | None:
    """Return the account with an e-mail address."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM user WHERE email_addr = ? AND email_addr != ''", (email.lower(),)
    ).fetchone()
    return row


def is_password_of(user: sqlite3.Row, digest: str) -> bool:
    """Tell whether ``digest`` is what clients make of the account's password."""
    salt, _, stored = str(user["passwd_hash"]).partition("$")
    return secrets.compare_digest(stored, _hashed(salt, digest))


def _login(connection: sqlite3.Connection, email: str, password: str) -> tuple[str, str]:
    """Return what the database keeps of an e-mail address and a password.

    Raises:
        ValueError: another user has the address, or it is not one.
    """
    email = email.strip().lower()
    if not _EMAIL.fullmatch(email):
        raise ValueError(f"{email!r} is not an e-mail address")
    taken = connection.execute("SELECT name FROM user WHERE email_addr = ?", (email,)).fetchone()
    if taken is not None:
        raise ValueError(f"user {taken['name']!r} has the address {email!r} already")
    # What clients send instead of the password (``web-rpcs.rst``, "Pages for programs").
    digest = hashlib.md5((password + email).encode(), usedforsecurity=False).hexdigest()
    salt = secrets.token_hex(8)
    return email, f"{salt}${_hashed(salt, digest)}"


def _hashed(salt: str, digest: str) -> str:
    return hashlib.scrypt(digest.encode(), salt=salt.encode(), n=2**12, r=8, p=1).hex()


def check_job_limit(connection: sqlite3.Connection, user: sqlite3.Row, jobs: int) -> None:
    """Refuse jobs with which a user would have more than ``max_jobs_in_progress`` results.

    The count is the real server's: results that are not over, plus the new jobs. A workunit without
    results counts as one, or else two requests in a row could both pass.

    Raises:
        RpcFailed: there would be too many.
    """
    if not user["max_jobs_in_progress"]:
        return
    (unfinished,) = connection.execute(
        "SELECT total(CASE WHEN r.id IS NULL THEN w.error_mask = 0 ELSE r.server_state < ? END) "
        "FROM batch b JOIN workunit w ON w.batch = b.id "
        "LEFT JOIN result r ON r.workunitid = w.id WHERE b.user_id = ?",
        (ServerState.OVER, user["id"]),
    ).fetchone()
    if unfinished + jobs > user["max_jobs_in_progress"]:
        raise RpcFailed("limit on jobs in progress exceeded")


def add_user(
    database: Database,
    name: str,
    *,
    access: bool = True,
    apps: Iterable[str] = (),
    max_jobs_in_progress: int = 0,
    authenticator: str | None = None,
    email: str = "",
    password: str = "",
) -> str:
    """Add a user and return the authenticator.

    Args:
        database: the project's.
        name: the user's.
        access: whether there is a row in ``user_submit``, if the user may do anything; without it,
            no RPC can be used.
        apps: the only apps to which the user may submit; none: all.
        max_jobs_in_progress: 0 means no limit.
        authenticator: None: a random one.
        email: an address with which, and with the password, programs find the authenticator.
        password: its password.

    Raises:
        ValueError: the name or the address is taken or wrong, or an app does not exist.
    """
    apps = tuple(apps)
    if not name.strip() or not name.isprintable():
        raise ValueError(f"a user cannot be named {name!r}: expected printable characters")
    authenticator = authenticator or secrets.token_hex(16)
    with database.write() as connection:
        if connection.execute("SELECT 1 FROM user WHERE name = ?", (name,)).fetchone():
            raise ValueError(f"there is a user {name!r} already")
        login = _login(connection, email, password) if email else ("", "")
        cursor = connection.execute(
            "INSERT INTO user (create_time, name, authenticator, email_addr, passwd_hash) "
            "VALUES (?, ?, ?, ?, ?)",
            (time.time(), name, authenticator, *login),
        )
        if access:
            connection.execute(
                "INSERT INTO user_submit (user_id, submit_all, max_jobs_in_progress) "
                "VALUES (?, ?, ?)",
                (cursor.lastrowid, int(not apps), max_jobs_in_progress),
            )
        for app_name in dict.fromkeys(apps):
            try:
                app = find_app(connection, app_name)
            except RpcFailed as error:
                raise ValueError(str(error)) from error
            connection.execute(
                "INSERT INTO user_submit_app (user_id, app_id) VALUES (?, ?)",
                (cursor.lastrowid, app["id"]),
            )
    return authenticator


#: The user whose authenticator is in ``boinc_gahp.toml``.
SUBMITTER = "submitter"
#: The user who gets the volunteers' credit.
VOLUNTEERS = "volunteers"
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
