"""Fetching files by HTTP: inputs of the modes ``remote`` and ``semilocal``, from this machine only.

A real server fetches from anywhere, and so lets whoever may submit reach its inner network
(``web-rpcs.md``, "submit_batch"); this one goes no further than 127.0.0.1.
"""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMEOUT = 20.0
_CHUNK = 1 << 16
_MAX_BYTES = 1 << 30
_HOSTS = ("127.0.0.1", "localhost")


class FetchError(Exception):
    """The file cannot be fetched."""


def fetch(url: str, write: Callable[[bytes], object]) -> None:
    """Fetch a file and hand its bytes to ``write``; redirects are not followed.

    Raises:
        FetchError: it is not on this machine, not there, or larger than 1 GiB.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in _HOSTS:
        raise FetchError("only http://127.0.0.1 is allowed here")
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    try:
        connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=_TIMEOUT)
        try:
            connection.request("GET", target, headers={"Host": parts.netloc})
            response = connection.getresponse()
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
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise FetchError(str(error)) from error
