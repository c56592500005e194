"""Settings and secrets.

``settings`` holds the values, ``places`` the files and directories, ``private`` reads files that
may hold a secret, ``reading`` checks a file's contents, ``layers`` combines files into
:class:`Settings`, ``accounts`` finds a project in them, ``urls`` tells projects apart, ``writing``
adds an account. Nothing slow is imported, because a daemon needs all but the last at its start.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from boinc_gahp.config.settings import (
    HTCondor as HTCondor,
    JobSettings as JobSettings,
    LimitSettings as LimitSettings,
    Logging as Logging,
    ProjectSettings as ProjectSettings,
    Settings as Settings,  # noqa: TC001  (handed out)
    StagingSettings as StagingSettings,
    State as State,
    Timeouts as Timeouts,
)
from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from boinc_gahp.config.accounts import (
        authenticator_of as authenticator_of,
        find_project as find_project,
        named_projects as named_projects,
        no_account as no_account,
        no_authenticator as no_authenticator,
        project_at as project_at,
        section as section,
    )
    from boinc_gahp.config.layers import load_layers as load_layers
    from boinc_gahp.config.places import (
        default_cache_dir as default_cache_dir,
        default_state_dir as default_state_dir,
        expand as expand,
        user_name as user_name,
    )
    from boinc_gahp.config.settings import FAILED_JOBS as FAILED_JOBS
    from boinc_gahp.config.urls import (
        ProjectUrl as ProjectUrl,
        are_one_project as are_one_project,
        url_identity as url_identity,
    )
    from boinc_gahp.config.writing import (
        AccountEntry as AccountEntry,
        account_entry as account_entry,
    )


__getattr__, __dir__ = exports(
    __name__,
    {
        "accounts": [
            "authenticator_of",
            "find_project",
            "named_projects",
            "no_account",
            "no_authenticator",
            "project_at",
            "section",
        ],
        "layers": ["load_layers"],
        "places": ["default_cache_dir", "default_state_dir", "expand", "user_name"],
        "settings": ["FAILED_JOBS"],
        "urls": ["ProjectUrl", "are_one_project", "url_identity"],
        "writing": ["AccountEntry", "account_entry"],
    },
)


def load(config_path: str | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of all files; later files override earlier ones.

    The files are ``/etc/boinc_gahp/boinc_gahp.toml``, those of the site's configuration
    directories, the user's own, each with ``projects.d/*.toml`` beside it, and ``config_path`` or
    else the file named by ``BOINC_GAHP_CONFIG`` in ``environ``; all but the last may be missing. If
    none of them names a project, ``config.txt`` in the working directory is read. The directories
    are those of platformdirs for this process.

    Raises:
        ConfigError: a file cannot be read, is not safe, or has something that is not a setting.
    """
    from boinc_gahp.config.layers import load_layers  # noqa: PLC0415  (imports the values above)

    return load_layers(config_path, environ)


def state_dir(settings: Settings) -> Path:
    """Return the directory of the ledger and the log; it may not exist yet."""
    from boinc_gahp.config.places import default_state_dir  # noqa: PLC0415

    return settings.state.dir or default_state_dir()


def cache_dir(settings: Settings) -> Path:
    """Return the directory of data that can be made again; it may not exist yet."""
    from boinc_gahp.config.places import default_cache_dir  # noqa: PLC0415

    return settings.state.cache_dir or default_cache_dir()


def ledger_file(settings: Settings) -> Path:
    """Return the path of this user's ledger."""
    return state_dir(settings) / "ledger.sqlite"


def log_file(settings: Settings) -> Path:
    """Return the path of this user's log."""
    from pathlib import Path  # noqa: PLC0415

    if settings.logging.file is not None:
        return Path(settings.logging.file)
    return state_dir(settings) / "boinc_gahp.log"
