"""Access to the page: under a name of the project, and with the page's token.

A page of another site in the same browser can send requests here, and, if that site's owner lets
its name point to 127.0.0.1, even read the answers. So the Host header must name this machine, also
for files and RPCs. Who opens the page needs its token: the address that ``run`` prints has it, and
afterwards a cookie. Other users of this machine do not know it, nor do browsers elsewhere.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from flask import redirect, request, url_for

from boinc_gahp.files import write_whole
from boinc_gahp.localproject.settings import SUBMITTER, settings_path

if TYPE_CHECKING:
    from werkzeug.wrappers import Response as AnyResponse

    from boinc_gahp.localproject.core import Core

_TOKEN_FILE = "page_token"  # noqa: S105  (its name)
_KEPT_FOR = timedelta(days=7)


class Refused(Exception):
    """The page does not answer; the text says why and what to do."""

    def __init__(self, title: str, words: str, status: int) -> None:
        super().__init__(words)
        self.title = title
        self.status = status


def page_address(core: Core) -> str:
    """Return the address that opens the page, with its token."""
    return f"{core.url}?token={_token(core)}"


def _token(core: Core) -> str:
    """Return the page's token, which stays the same; it is made when it is first asked for."""
    path = core.directory / _TOKEN_FILE
    token = path.read_text("ascii") if path.exists() else ""
    if not token:
        token = secrets.token_urlsafe(24)
        write_whole(path, token, 0o600)
    return token


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


def check_token(core: Core) -> AnyResponse | None:
    """Refuse browsers without the token; put one from an address into a cookie."""
    token = _token(core)
    # Cookies ignore ports: two projects on one machine need two names.
    name = f"local_project_{hashlib.sha256(token.encode()).hexdigest()[:12]}"
    given = request.args.get("token", request.cookies.get(name, ""))
    if not secrets.compare_digest(given.encode(), token.encode()):
        raise Refused(
            "Open the page by its whole address",
            "This page is shown only with its token. Open the address that boinc_gahp "
            "local-project run printed: it ends with ?token= and the token.",
            401,
        )
    if "token" not in request.args or request.endpoint is None:
        return None
    answer = redirect(url_for(request.endpoint, **(request.view_args or {})))
    answer.set_cookie(name, token, _KEPT_FOR, path="/test/", httponly=True, samesite="Lax")
    return answer


def settings_file(core: Core) -> str:
    """Return the path of the submitter's settings file, quoted for a shell."""
    path = settings_path(core.directory.absolute(), SUBMITTER)
    with suppress(RuntimeError, ValueError):  # no home, or the file is not in it
        return f"~/{shlex.quote(str(path.relative_to(Path.home())))}"
    return shlex.quote(str(path))
