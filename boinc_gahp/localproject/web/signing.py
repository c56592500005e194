"""Signing in, with an authenticator or a one-time link, and signing out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flask import Response, flash, redirect, request, url_for

from boinc_gahp.localproject.server.replies import RpcFailed
from boinc_gahp.localproject.web import access
from boinc_gahp.localproject.web.layout import show
from boinc_gahp.localproject.web.posted import posted

if TYPE_CHECKING:
    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core

#: The address to go to afterwards: one of ours, and nothing that leads elsewhere.
_OURS = re.compile(r"/test/[A-Za-z0-9_\-/.]*(\?[A-Za-z0-9_=&%\-]*)?")


def form(core: Core) -> Response:
    """Show the form; with a link's key, only a button. Sending the form uses up the key."""
    key = request.args.get("key", "")
    return show(
        core,
        "sign_in.html",
        key=key if key in core.sign_in_keys else "",
        name=core.sign_in_keys.get(key, ""),
        spent=bool(key) and key not in core.sign_in_keys,
        then=_then(request.args.get("then", "")),
        error="",
    )


def _then(address: str) -> str:
    return address if _OURS.fullmatch(address) else url_for("page.batches")


def signed_in(core: Core) -> AnyResponse:
    """Begin a session."""
    with posted(core) as sent:
        then = _then(sent.text("then"))
        connection = core.db.connection()
        authenticator = sent.text("authenticator").strip()
        if sent.text("key"):
            authenticator = access.authenticator_of_key(core, connection, sent.text("key"))
        try:
            user = access.sign_in(core, authenticator)
        except RpcFailed as error:
            words = {
                "no authenticator": "Enter the authenticator of your account on this project.",
                "bad authenticator": "No account has this authenticator. The submitter's "
                "authenticator is in boinc_gahp.toml in the project's directory.",
                "no file access": "This account may not submit jobs: the project's admin can "
                "allow it.",
            }.get(error.message, error.message)
            return show(
                core, "sign_in.html", 422, key="", name="", spent=False, then=then, error=words
            )
    flash(f"Signed in as {user.name}.", "good")
    return redirect(then, 303)


def signed_out(core: Core) -> AnyResponse:
    """End the session."""
    with posted(core):
        access.sign_out(core)
    flash("Signed out.", "good")
    return redirect(url_for("page.batches"), 303)
