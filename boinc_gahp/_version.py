"""The only place of the version, and of the date of the last release."""

from __future__ import annotations

#: Between releases the next one with ``.dev0``, for which ``scripts/building.py`` puts the version
#: of the tree into wheels and sdists.
__version__ = "1.1.0.dev0"
#: The release date in the form of the GAHP banner (``Mon DD YYYY``).
RELEASE_DATE = "Nov 29 2026"

if __version__.endswith(".dev0"):
    # This is the source itself, as in an editable installation, which may be pulled at any time.
    # The last line that git has logged tells what is checked out; to start git would take longer.
    try:
        with open(__file__.rsplit("/", 2)[0] + "/.git/logs/HEAD", "rb") as log:  # noqa: PTH123
            __version__ += f"+g{log.readlines()[-1].split()[1][:8].decode()}"
    except (OSError, IndexError):
        pass
