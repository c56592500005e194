"""A project's address, in the one form that it is known by."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit


def project_url(text: str) -> str:
    """Return ``text`` with its scheme and host in lower case and a final slash.

    Raises:
        ValueError: it is no http or https address of a directory, as a project's is.
    """
    problem = ValueError("the project's address is expected, like https://boinc.example.edu/test/")
    try:
        parts = urlsplit(text)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        raise problem from None
    if parts.scheme not in {"http", "https"} or not (parts.hostname and port_is_right):
        raise problem
    if parts.query or parts.fragment or "@" in parts.netloc or re.search(r"[\x00-\x20\x7f]", text):
        raise problem
    path = parts.path if parts.path.endswith("/") else parts.path + "/"
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, "", ""))
