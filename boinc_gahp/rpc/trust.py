"""Which certificates are trusted: the system's, as in other programs, or those of a file."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.util.ssl_ import create_urllib3_context

if TYPE_CHECKING:
    from collections.abc import Callable


def trusting(ca_bundle: str | None) -> Callable[[], ssl.SSLContext]:
    """Return a function that makes the context of all connections to a project once, when needed.

    Args:
        ca_bundle: a PEM file with the authorities to trust, or a directory of such; None: those of
            the system, that is of OpenSSL's own directory (``openssl version -d``), or of
            ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``. Where a Python knows of none, those of certifi.
    """
    made: list[ssl.SSLContext] = []

    def context() -> ssl.SSLContext:
        # Two threads may both make one; that only costs time.
        if not made:
            made.append(_context(ca_bundle))
        return made[0]

    return context


def _context(ca_bundle: str | None) -> ssl.SSLContext:
    context = create_urllib3_context()
    if ca_bundle is None:
        if _system_has_any():
            context.load_default_certs()
            return context
        ca_bundle = DEFAULT_CA_BUNDLE_PATH
    is_directory = Path(ca_bundle).is_dir()
    context.load_verify_locations(
        cafile=None if is_directory else ca_bundle, capath=ca_bundle if is_directory else None
    )
    return context


def _system_has_any() -> bool:
    """Tell whether this Python's OpenSSL finds anything where it looks for authorities."""
    paths = ssl.get_default_verify_paths()
    # Each is None if there is no such file or directory.
    places = [Path(place) for place in (paths.cafile, paths.capath) if place]
    return any(place.is_file() or any(place.iterdir()) for place in places)
