"""Who may see the page, and who acts on it: addresses, sign-in, sessions and forms' tokens.

A page that another site has opened in the same browser can send requests here, and, by a name that
it owns and lets point to 127.0.0.1, even read the answers. So the Host header must name this
machine, a form must come from a page of ours (Origin, Sec-Fetch-Site, and a token that only our
pages hold), and the session's cookie is sent with requests from our own pages alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import current_app, g, request, session

from .. import accounts
from ..atomic import write_atomically
from ..replies import RpcFailed
from ..settings import SUBMITTER

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from flask.sansio.app import App

    from ..core import Core

_KEY_FILE = "page_key"
_KEY_BYTES = 32
_SIGNED_IN_FOR = timedelta(days=7)
_READING = ("GET", "HEAD")


class Refused(Exception):
    """The page does not answer, or does not do it; the text says why and what to do."""

    def __init__(self, title: str, words: str, status: int = 403) -> None:
        super().__init__(words)
        self.title = title
        self.status = status


def sign_in_link(core: Core, user_name: str = SUBMITTER) -> str:
    """Return an address at which a user is signed in, once, without the authenticator."""
    key = secrets.token_urlsafe(24)
    core.sign_in_keys[key] = user_name
    return f"{core.url}sign-in?key={key}"


def prepare(app: App, core: Core) -> None:
    """Set up the sessions: signed cookies that hold no secret of a user."""
    key = _secret_key(core.directory / _KEY_FILE)
    app.config.update(
        SECRET_KEY=key,
        # Cookies do not tell ports apart: two projects on one machine need two names.
        SESSION_COOKIE_NAME=f"local_project_{hashlib.sha256(key).hexdigest()[:12]}",
        SESSION_COOKIE_PATH="/test/",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        PERMANENT_SESSION_LIFETIME=_SIGNED_IN_FOR,
        # What the script fetches must not bring a cookie back that has changed meanwhile.
        SESSION_REFRESH_EACH_REQUEST=False,
    )


def _secret_key(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) != _KEY_BYTES:
        key = secrets.token_bytes(_KEY_BYTES)
        write_atomically(path, key, 0o600)
    return key


def check_request(core: Core) -> None:
    """Refuse requests from elsewhere: other machines, other names, other sites' forms."""
    if not core.remote_page:
        if not _loopback(request.remote_addr or ""):
            raise Refused(
                "This page is for the project's own machine",
                "It shows nothing to browsers on other machines. Whoever runs the project can open "
                "it to everyone who reaches this address: boinc_gahp local-project run "
                "--page-for-everyone. The web RPCs are not affected.",
            )
        _check_host(core)
    if request.method not in _READING:
        _check_origin()


def _loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _check_host(core: Core) -> None:
    try:
        name = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    except ValueError:
        name = ""
    if not (name in ("localhost", urlsplit(core.url).hostname) or _loopback(name)):
        raise Refused(
            "This is not the project's address",
            f"The project's page answers at {core.url} and, on its own machine, at localhost. It "
            "was asked for under another name, as a page of another site might do it.",
            421,
        )


def _check_origin() -> None:
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    if site != "same-origin" or (
        origin is not None and urlsplit(origin).netloc != request.headers.get("Host", "")
    ):
        raise Refused(
            "Nothing was done",
            "The form was sent from a page of another site. Open the project's page itself, and "
            "do there what you mean to do.",
        )


def form_token() -> str:
    """Return the token that every form on our pages holds."""
    if "token" not in session:
        session["token"] = secrets.token_urlsafe(18)
    return str(session["token"])


def check_token(given: str) -> None:
    """Refuse a form that does not hold the token."""
    expected = str(session.get("token", ""))
    if not expected or not secrets.compare_digest(given.encode(), expected.encode()):
        raise Refused(
            "Nothing was done",
            "The form had expired, or cookies are off in this browser. Go back, load the page "
            "again, and send the form once more.",
        )


def _proof(authenticator: str) -> str:
    """Return what shows, but does not tell, which authenticator a session began with."""
    key: bytes = current_app.config["SECRET_KEY"]
    return hmac.new(key, authenticator.encode(), "sha256").hexdigest()[:32]


def sign_in(connection: sqlite3.Connection, authenticator: str) -> accounts.User:
    """Begin a session.

    Raises:
        RpcFailed: the authenticator is nobody's, or its user may do nothing here.
    """
    user = accounts.authenticate(connection, authenticator)
    session.clear()
    session.permanent = True
    session["user"] = user.id
    session["proof"] = _proof(authenticator)
    return user


def authenticator_of_key(core: Core, connection: sqlite3.Connection, key: str) -> str:
    """Use up a sign-in link's key and return its user's authenticator; empty: no such key."""
    name = core.sign_in_keys.pop(key, None)
    row = connection.execute("SELECT authenticator FROM user WHERE name = ?", (name,)).fetchone()
    return str(row["authenticator"]) if row is not None else ""


def visitor(core: Core) -> accounts.User | None:
    """Return who is signed in; asked of the database once a request, so rights are today's."""
    if "visitor" not in g:
        g.visitor = _visitor(core)
    found: accounts.User | None = g.visitor
    return found


def _visitor(core: Core) -> accounts.User | None:
    connection = core.db.connection()
    row = connection.execute(
        "SELECT authenticator FROM user WHERE id = ?", (session.get("user", 0),)
    ).fetchone()
    if row is None or not secrets.compare_digest(
        _proof(row["authenticator"]), str(session.get("proof", ""))
    ):
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
            "Looking is free, but this needs an account on the project: sign in with its "
            "authenticator.",
            401,
        )
    return found
