"""A project's address, and which addresses mean the same project."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from boinc_gahp.errors import BadRequest
from boinc_gahp.secret import hide_logins
from boinc_gahp.text import quoted

if TYPE_CHECKING:
    from typing_extensions import Self

_DEFAULT_PORTS = {"http": 80, "https": 443}
_NEVER = re.compile(r"[\x00-\x20\x7f]")


def is_of_this_machine(url: str) -> bool:
    """Tell whether a URL's host is a loopback address."""
    name = urlsplit(url).hostname or ""
    if name == "localhost":
        return True
    from ipaddress import ip_address  # noqa: PLC0415  (a daemon's start needs no addresses)

    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


class ProjectUrl(str):
    """A project's address, normalized: host in lower case, no default port, a final slash.

    It is made from a text where that comes in, and passed on in this type. Spaces around the text
    are ignored.

    Raises:
        BadRequest: the text is not an http or https address of a directory, as a project's is.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Return the text as an address; an address is returned unchanged."""
        return text if isinstance(text, cls) else super().__new__(cls, _usual_form(text))

    @property
    def host(self) -> str:
        """The host, with the port unless it is the scheme's default."""
        return self.split("/", 3)[2]

    @property
    def is_private(self) -> bool:
        """Whether nobody on the way there can read requests: https, or this machine itself."""
        return self.startswith("https:") or is_of_this_machine(self)

    @property
    def identity(self) -> str:
        """The part that all addresses of one project have in common: ``//HOST/PATH/``.

        A project that changes from http to https is the same one, with the same accounts and
        batches.
        """
        return self.partition(":")[2]


def url_identity(url: str) -> str:
    """Return :attr:`ProjectUrl.identity` of a text; a text that is not an address is returned."""
    try:
        return ProjectUrl(url).identity
    except BadRequest:
        return url


def are_one_project(url: str, other: str) -> bool:
    """Tell whether two addresses belong to the same project."""
    return url_identity(url) == url_identity(other)


def _usual_form(text: str) -> str:
    problem = BadRequest(
        f"{quoted(hide_logins(text))} is not a project's URL; it must be like "
        "https://boinc.example.edu/test/, as volunteers use it"
    )
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
    return f"{parts.scheme}://{host}{path}"
