"""Fetches files by HTTP: inputs of the modes ``remote`` and ``semilocal``, from this machine only.

A real server fetches from anywhere, and so lets every submitter reach its inner network
(``web-rpcs.rst``, "Input files"); this one only goes to 127.0.0.1.
"""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT = 20.0
_CHUNK = 1 << 16
_MAX_BYTES = 1 << 30
_HOSTS = ("127.0.0.1", "localhost")
_MOVED = frozenset({301, 302, 303, 307, 308})
#: Each redirect has to stay on this machine.
_REDIRECTS = 5


class FetchError(Exception):
    """The file cannot be fetched."""


def fetch(url: str, write: Callable[[bytes], object]) -> None:
    """Fetch a file and pass its bytes to ``write``; redirects on this machine are followed.

    Raises:
        FetchError: it is not on this machine, not there, or larger than 1 GiB.
    """
    for _ in range(_REDIRECTS + 1):
        elsewhere = _fetched(url, write)
        if elsewhere is None:
            return
        url = elsewhere
    raise FetchError(f"more than {_REDIRECTS} redirects")


def _fetched(url: str, write: Callable[[bytes], object]) -> str | None:
    """Fetch a file; return None, or the address to which its server redirects."""
    try:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname not in _HOSTS:
            raise FetchError("only http://127.0.0.1 is allowed here")
        target = parts.path or "/"
        if parts.query:
            target += f"?{parts.query}"
        connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=_TIMEOUT)
        try:
            connection.request("GET", target, headers={"Host": parts.netloc})
            response = connection.getresponse()
            location = response.getheader("Location")
            if location is not None and response.status in _MOVED:
                return urljoin(url, location)
            if response.status != http.client.OK:
                raise FetchError(f"HTTP {response.status} {response.reason}")
            received = 0
            while chunk := response.read(_CHUNK):
                received += len(chunk)
                if received > _MAX_BYTES:
                    raise FetchError(f"more than {_MAX_BYTES:,} bytes")
                write(chunk)
            if response.length:
                raise FetchError(f"cut off after {received:,} bytes")
            return None
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise FetchError(str(error)) from error
