"""A project's address."""

from __future__ import annotations

from urllib.parse import urlsplit

from boinc_gahp.errors import BadRequest
from boinc_gahp.secret import hide_logins


def address(url: str) -> tuple[str, str]:
    """Return a project's URL in its usual form (it ends in ``/``), and its host.

    The host comes with the port where that is not the scheme's own.

    Raises:
        BadRequest: it is no address of a project.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        host = parts.hostname or ""
        host.encode("ascii" if host.isascii() else "idna")
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in {"http", "https"} or not host or not plain:
        raise BadRequest(
            f"{hide_logins(url)!r} is no project's URL: expected http(s)://HOST/PROJECT/, as "
            "volunteers use it"
        )
    path = parts.path if parts.path.endswith("/") else parts.path + "/"
    if ":" in host:
        host = f"[{host}]"
    default = {"http": 80, "https": 443}[parts.scheme]
    where = host if port in {None, default} else f"{host}:{port}"
    return f"{parts.scheme}://{where}{path}", where
