"""The banner and the text of VERSION; imports nothing but the version, for it comes first."""

from __future__ import annotations

from boinc_gahp._version import RELEASE_DATE, __version__

#: Version of the command set, as in the example of ``gahp.rst``, "Common commands"; ours is in the
#: description.
GAHP_VERSION = "1.0.2"

#: What VERSION answers after ``S``. The gridmanager reads it up to 148 characters
#: (``gahp.rst``, "Start-up", 2); its first character must be ``$``.
VERSION_TEXT = f"$GahpVersion: {GAHP_VERSION} {RELEASE_DATE} BOINC\\ GAHP\\ {__version__} $"

#: The first bytes on stdout.
BANNER = VERSION_TEXT.encode("ascii") + b"\n"
