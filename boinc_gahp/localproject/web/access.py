"""Access to the page: who may see it, and on whose behalf; sign-in, sessions and form tokens.

A page of another site in the same browser can send requests here, and, if that site's owner lets
its name point to 127.0.0.1, even read the answers. So the Host header must name this machine, also
for files and RPCs; a form must come from one of our pages (Origin, Sec-Fetch-Site, and a token that
only our pages contain), and the session's cookie is sent only with requests from our own pages.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import Request, g, request, session

from boinc_gahp.files import write_whole
from boinc_gahp.localproject import accounts
from boinc_gahp.localproject.server.addresses import is_loopback
from boinc_gahp.localproject.server.replies import RpcFailed
from boinc_gahp.localproject.settings import SUBMITTER, settings_path

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any

    from flask import Flask
    from flask.sansio.app import App

    from boinc_gahp.localproject.core import Core

_KEY_FILE = "page_key"
_KEY_BYTES = 32
_SIGNED_IN_FOR = timedelta(days=7)
_READING = ("GET", "HEAD")
#: Bytes to keep of a form from somebody who is not signed in: enough to sign in.
STRANGERS_BODY = 64 << 10


class Refused(Exception):
    """The page does not answer, or does not do it; the text says why and what to do."""

    def __init__(self, title: str, words: str, status: int = 403) -> None:
        super().__init__(words)
        self.title = title
        self.status = status


def sign_in_link(core: Core, user_name: str = SUBMITTER) -> str:
    """Return an address that signs a user in, once, without the authenticator."""
    key = secrets.token_urlsafe(24)
    core.sign_in_keys[key] = user_name
    return f"{core.url}sign-in?key={key}"


def prepare(app: App, core: Core) -> None:
    """Set up the sessions: signed cookies that contain no secret of a user."""
    key = _secret_key(core.directory / _KEY_FILE)
    app.config.update(
        SECRET_KEY=key,
        # Cookies ignore ports: two projects on one machine need two names.
        SESSION_COOKIE_NAME=f"local_project_{hashlib.sha256(key).hexdigest()[:12]}",
        SESSION_COOKIE_PATH="/test/",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        PERMANENT_SESSION_LIFETIME=_SIGNED_IN_FOR,
        # The script's requests must not bring back a cookie that has changed meanwhile.
        SESSION_REFRESH_EACH_REQUEST=False,
    )


def _secret_key(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) != _KEY_BYTES:
        key = secrets.token_bytes(_KEY_BYTES)
        write_whole(path, key, 0o600)
    return key


def check_host(core: Core) -> None:
    """Refuse requests for a name that is not the project's, as another site's page sends them.

    Browsers always send the name; a program that does not is not a browser.
    """
    host = request.headers.get("Host")
    name = _hostname(host or "")
    if host is not None and name not in core.names:
        raise Refused(
            "This is not the project's address",
            f"The project answers at {core.url}. This request was for {name[:100]!r}; a page of "
            "another site may have sent it. If that is a name of this machine, start the project "
            "with it: boinc_gahp local-project run --name NAME.",
            421,
        )


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def check_request(core: Core) -> None:
    """Refuse the page to other machines, and refuse other sites' forms."""
    if not core.remote_page and not is_loopback(request.remote_addr or ""):
        raise Refused(
            "This page is for the project's own machine",
            "Browsers on other machines cannot use it. To open it to everyone who reaches this "
            "address, start the project with: boinc_gahp local-project run --page-for-everyone. "
            "The web RPCs are not affected.",
        )
    if request.method not in _READING:
        _check_origin()


def _check_origin() -> None:
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    if site != "same-origin" or (
        origin is not None and urlsplit(origin).netloc != request.headers.get("Host", "")
    ):
        raise Refused(
            "Nothing was done",
            "The form was sent from a page of another site. Open the project's own page, and use "
            "the form there.",
        )


def form_token() -> str:
    """Return the token that every form on our pages contains."""
    if "token" not in session:
        session["token"] = secrets.token_urlsafe(18)
    return str(session["token"])


def check_token(given: str) -> None:
    """Refuse a form without the token."""
    expected = str(session.get("token", ""))
    if not expected or not secrets.compare_digest(given.encode(), expected.encode()):
        raise Refused(
            "Nothing was done",
            "The form has expired, or cookies are off in this browser. Go back, load the page "
            "again, and send the form once more.",
        )


def sign_in(core: Core, authenticator: str) -> accounts.User:
    """Begin a session.

    Raises:
        RpcFailed: the authenticator is nobody's, or its user has no rights here.
    """
    now = time.time()
    key = secrets.token_urlsafe(24)
    with core.db.write() as connection:
        user = accounts.authenticate(connection, authenticator)
        connection.execute("DELETE FROM session WHERE expires < ?", (now,))
        connection.execute(
            "INSERT INTO session (id, user_id, authenticator, expires) VALUES (?, ?, ?, ?)",
            (key, user.id, authenticator, now + _SIGNED_IN_FOR.total_seconds()),
        )
    sign_out(core)
    session.permanent = True
    session["id"] = key
    return user


def sign_out(core: Core) -> None:
    """End the session, also for anyone else who has its cookie."""
    with core.db.write() as connection:
        connection.execute("DELETE FROM session WHERE id = ?", (session.get("id", ""),))
    session.clear()


def authenticator_of_key(core: Core, connection: sqlite3.Connection, key: str) -> str:
    """Use up a sign-in link's key and return its user's authenticator; empty: no such key."""
    name = core.sign_in_keys.pop(key, None)
    row = connection.execute("SELECT authenticator FROM user WHERE name = ?", (name,)).fetchone()
    return str(row["authenticator"]) if row is not None else ""


def visitor(core: Core) -> accounts.User | None:
    """Return who is signed in; the database is asked once per request, so rights are current."""
    if "visitor" not in g:
        g.visitor = _visitor(core, session)
    found: accounts.User | None = g.visitor
    return found


def settings_file(core: Core) -> str:
    """Return the path of the visitor's settings file, quoted for a shell.

    Without a sign-in, the submitter's; empty if other machines may look, or if there is no file.
    """
    user = visitor(core)
    if user is None and core.remote_page:
        return ""
    path = settings_path(core.directory.absolute(), SUBMITTER if user is None else user.name)
    if not path.exists():
        return ""
    with suppress(RuntimeError, ValueError):  # no home, or the file is not in it
        return f"~/{shlex.quote(str(path.relative_to(Path.home())))}"
    return shlex.quote(str(path))


def is_signed_in(app: Flask, core: Core, cookie: str) -> bool:
    """Whether a request with this ``Cookie`` header would be from a signed-in user."""
    asked = Request({"HTTP_COOKIE": cookie, "REQUEST_METHOD": "GET"})
    opened = app.session_interface.open_session(app, asked)
    return opened is not None and _visitor(core, opened) is not None


def _visitor(core: Core, kept: Mapping[str, Any]) -> accounts.User | None:
    connection = core.db.connection()
    row = connection.execute(
        "SELECT u.authenticator FROM session s "
        "JOIN user u ON u.id = s.user_id AND u.authenticator = s.authenticator "
        "WHERE s.id = ? AND s.expires >= ?",
        (kept.get("id", ""), time.time()),
    ).fetchone()
    if row is None:
        return None
    try:
        return accounts.authenticate(connection, row["authenticator"])
    except RpcFailed:
        return None


def need_visitor(core: Core) -> accounts.User:
    """Return who is signed in; refuse if nobody is."""
    found = visitor(core)
    if found is None:
        raise Refused(
            "Sign in first",
            "Everyone can look, but this needs an account on the project: sign in with the "
            "account's authenticator.",
            401,
        )
    return found
