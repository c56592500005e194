"""A project's address, and what tells one project from another."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_NEVER = re.compile(r"[\x00-\x20\x7f]")


class ProjectUrl(NamedTuple):
    """A project's address, taken apart.

    Attributes:
        scheme: ``http`` or ``https``.
        host: in lower case, with the port where it is not the scheme's own.
        path: begins and ends with ``/``.
    """

    scheme: str
    host: str
    path: str

    def __str__(self) -> str:
        """Return the address in its usual form."""
        return f"{self.scheme}:{self.identity}"

    @property
    def identity(self) -> str:
        """What all addresses of one project have in common: ``//HOST/PATH/``.

        A project that goes from http to https is the same one, with the same accounts and batches.
        """
        return f"//{self.host}{self.path}"


def parse(text: str) -> ProjectUrl:
    """Return the address that ``text`` is; spaces around it do not count.

    Raises:
        ValueError: it is no http or https address of a directory, as a project's is.
    """
    problem = ValueError("the project's address is expected, like https://boinc.example.edu/test/")
    text = text.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
        host = (parts.hostname or "").lower()
        host.encode("ascii" if host.isascii() else "idna")
    except ValueError:
        raise problem from None
    if parts.scheme not in _DEFAULT_PORTS or not host or port == 0:
        raise problem
    if parts.query or parts.fragment or "@" in parts.netloc or _NEVER.search(text):
        raise problem
    if ":" in host:
        host = f"[{host}]"
    if port not in {None, _DEFAULT_PORTS[parts.scheme]}:
        host = f"{host}:{port}"
    path = parts.path if parts.path.endswith("/") else parts.path + "/"
    return ProjectUrl(parts.scheme, host, path)


def project_url(text: str) -> str:
    """Return an address in its usual form: lower case, no default port, a final slash.

    Raises:
        ValueError: as :func:`parse` does.
    """
    return str(parse(text))


def identity(url: str) -> str:
    """Return :attr:`ProjectUrl.identity` of an address; what is none stands for itself."""
    try:
        return parse(url).identity
    except ValueError:
        return url


def are_one_project(url: str, other: str) -> bool:
    """Tell whether two addresses are the same project's."""
    return identity(url) == identity(other)
