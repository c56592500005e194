"""The one place that holds the version and the day of its release."""

from __future__ import annotations

__version__ = "0.1.0"
#: Day of the release as the GAHP banner wants it (``Mon DD YYYY``).
RELEASE_DATE = "Nov 21 2026"
