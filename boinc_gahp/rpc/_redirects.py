"""Which redirects are followed: to the same server, and from http to https of the same host.

A request has the authenticator in its body, and perhaps in its URL. So the URL is parsed by the
same parser that connects, :func:`urllib3.util.parse_url`, and the next URL is built from the parts
that it found. A location that two parsers may read differently is refused.
"""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

from urllib3.util import Url, parse_url

from boinc_gahp.secret import hide_logins
from boinc_gahp.text import quoted, shorten

#: Statuses that ask for the same request elsewhere. 303 asks for a GET of something else instead,
#: so it is not a reply to the request.
_AGAIN = (301, 302, 307, 308)
_PORTS = {"http": 80, "https": 443}
#: Allowed in a Location: visible ASCII without the backslash, which some read as a slash.
_PLAIN = re.compile(r"[!-\[\]-~]+")


def followed(status: int, location: str, url: str) -> str:
    """Return the next URL after ``url`` was answered with ``status`` and ``location``.

    Raises:
        ValueError: it is not followed, because it leads to another server, nowhere, or is
            ambiguous; the text says what the server does, without its name.
    """
    if status not in _AGAIN or not location:
        raise ValueError(f"answered HTTP {status}: check the project's URL")
    here = parse_url(url)
    there = _read(location, url)
    server, other = _server(here), _server(there)
    upgrade = server[:2] == ("http", other[1]) and other[::2] == ("https", _PORTS["https"])
    if other[0] not in {server[0], "https"}:
        raise ValueError(
            f"redirects from {server[0]} to {shown(there.url)}, which is not followed: check "
            "the project's URL"
        )
    if other != server and not upgrade:
        raise ValueError(
            f"redirects to another server, {shown(there.url)}: if that is right, set the project's "
            "URL accordingly"
        )
    if there == here:
        raise ValueError(f"answered HTTP {status}: check the project's URL")
    return there.url


def is_upgrade(url: str, to: str) -> bool:
    """Tell whether a followed redirect leads from http to https."""
    return url.startswith("http:") and to.startswith("https:")


def is_login_form(to: str) -> bool:
    """Tell whether a redirect asks for a login, as pages for people do."""
    return (parse_url(to).path or "").endswith("/login_form.php")


def upgraded(url: str) -> str:
    """Return the same URL on the https server of its host."""
    return parse_url(url)._replace(scheme="https", port=None).url


def _read(location: str, url: str) -> Url:
    """Return the parts of ``location``, which may be relative to ``url``."""
    found, login = Url(), False
    if _PLAIN.fullmatch(location) is not None:
        with suppress(ValueError):  # includes urllib3's LocationParseError
            joined = urljoin(url, location)
            login = "@" in urlsplit(joined).netloc
            found = parse_url(joined)
    if not found.host or found.auth is not None or login:
        shown = quoted(hide_logins(location.partition("?")[0]), 120)
        raise ValueError(f"redirects to an invalid URL ({shown}): check the project's URL")
    return found._replace(path=found.path or "/", fragment=None)


def _server(parts: Url) -> tuple[str, str, int]:
    scheme = parts.scheme or ""
    return scheme, parts.host or "", parts.port or _PORTS.get(scheme, 0)


def shown(url: str) -> str:
    """Return a URL for messages: without its query, which may have ``auth_str``."""
    return shorten(parse_url(url)._replace(query=None).url, 200)
