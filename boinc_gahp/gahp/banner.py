"""The banner and the text of VERSION. It comes first, so it imports nothing but the version."""

from __future__ import annotations

from boinc_gahp._version import RELEASE_DATE, __version__

#: Version of the command set, as in the example of ``gahp.rst``, "Common commands"; ours is in the
#: description.
GAHP_VERSION = "1.0.2"

#: The answer to VERSION, after ``S``. The gridmanager reads up to 148 characters of it
#: (``gahp.rst``, "Start-up", 2); its first character must be ``$``.
VERSION_TEXT = f"$GahpVersion: {GAHP_VERSION} {RELEASE_DATE} BOINC\\ GAHP\\ {__version__} $"

#: The first bytes on stdout.
BANNER = VERSION_TEXT.encode("ascii") + b"\n"
