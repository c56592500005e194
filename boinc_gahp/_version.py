"""The only place of the version and its release date."""

from __future__ import annotations

__version__ = "0.1.0"
#: The release date in the form of the GAHP banner (``Mon DD YYYY``).
RELEASE_DATE = "Nov 21 2026"
