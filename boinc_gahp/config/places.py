"""Files and directories: where settings are, and how ``~`` and ``{user}`` are replaced."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import PlatformDirs

from boinc_gahp import files
from boinc_gahp.errors import ConfigError

if TYPE_CHECKING:
    from boinc_gahp.config.settings import Settings


#: The name of a settings file in each of the directories.
FILE_NAME = "boinc_gahp.toml"
#: Beside it: a directory of more settings files, for a project each.
PROJECTS_DIR = "projects.d"
#: The C++ program's settings file, in the working directory.
OLD_FILE_NAME = "config.txt"
#: The admin's directory (``docs/reference/settings.rst``, "Settings").
ADMIN_DIR = Path("/etc/boinc_gahp")


class TrustedPath(str):
    """The path of a settings file that is used although another user owns it."""

    __slots__ = ()


def trusted(config: str | None) -> TrustedPath | None:
    """Return the settings file that is trusted, for ``--trust-config``; None if none is named.

    Args:
        config: the file of ``--config``; None: that of ``BOINC_GAHP_CONFIG``.
    """
    named = config or os.environ.get("BOINC_GAHP_CONFIG")
    return TrustedPath(named) if named else None


_DIRS = PlatformDirs("boinc_gahp", appauthor=False, multipath=True)


def settings_directories() -> tuple[Path, ...]:
    """Return the directories whose settings files are always tried, the weakest first."""
    # XDG_CONFIG_DIRS has the most important one first.
    site = reversed(_DIRS.site_config_dir.split(os.pathsep))
    users = user_directory()
    own = () if users is None else (users,)
    return tuple(dict.fromkeys((ADMIN_DIR, *map(Path, site), *own)))


def user_directory() -> Path | None:
    """Return the directory of the user's own settings files; None for a user without a home."""
    try:
        return Path(_DIRS.user_config_dir)
    except RuntimeError:
        return None


def default_state_dir() -> Path:
    """Return the user's state directory; raises ConfigError for a user without a home."""
    return _usual("user_state_dir", "dir")


def default_cache_dir() -> Path:
    """Return the user's cache directory; raises ConfigError for a user without a home."""
    return _usual("user_cache_dir", "cache_dir")


def _usual(of_user: str, key: str) -> Path:
    try:
        return Path(getattr(_DIRS, of_user))
    except RuntimeError:
        raise ConfigError(
            f"user {user_name()} has no home directory: set HOME, or {key} in the section [state] "
            f"of {ADMIN_DIR / FILE_NAME}"
        ) from None


def user_name() -> str:
    """Return the name of the user who runs this process.

    USER and LOGNAME are not used: the gridmanager passes on those of condor_master, if any
    (``gridmanager-batch.rst``, "Starting the GAHP").
    """
    return files.user_name(os.getuid())


def expand(text: str, base: Path) -> Path:
    """Return the path that a text in a settings file of the directory ``base`` means.

    ``~`` and ``~name`` at its beginning and ``{user}`` anywhere are replaced; a relative path is
    relative to ``base``.

    Raises:
        ValueError: it is not a path, or has another word in braces, or names a user that does not
            exist.
    """
    if not text or "\0" in text:
        raise ValueError("a path is expected")
    for word in re.findall(r"\{\w*\}", text):
        if word != "{user}":
            raise ValueError(f"{word} stands for nothing; did you mean {{user}}?")
    named = text.replace("{user}", user_name())
    path = os.path.expanduser(named)  # noqa: PTH111  (leaves an unknown user as it is)
    if path.startswith("~"):
        raise ValueError(f"there is no user {named.split('/')[0][1:]!r}, or the user has no home")
    return base / path


def state_dir(settings: Settings) -> Path:
    """Return the directory of the ledger and the log; it may not exist yet."""
    return settings.state.dir or default_state_dir()


def cache_dir(settings: Settings) -> Path:
    """Return the directory of data that can be made again; it may not exist yet."""
    return settings.state.cache_dir or default_cache_dir()


def ledger_file(settings: Settings) -> Path:
    """Return the path of this user's ledger."""
    return state_dir(settings) / "ledger.sqlite"


def log_file(settings: Settings) -> Path:
    """Return the path of this user's log."""
    if settings.logging.file is not None:
        return Path(settings.logging.file)
    return state_dir(settings) / "boinc_gahp.log"
