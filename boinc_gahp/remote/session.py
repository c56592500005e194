"""A project, an account and the settings, as one value: what this room's functions are given."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from boinc_gahp.config import ProjectSettings, Settings, cache_dir
from boinc_gahp.config.accounts import project_at
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import ConfigError
from boinc_gahp.rpc import ClientOptions
from boinc_gahp.rpc import WebRpcs as Rpc
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.bridge import Bridge


class Session:
    """What is shared by all that is done with one project and one account; thread-safe.

    Attributes:
        rpc: the project's web RPCs.
        settings: all settings.
        project_settings: the project's own.
        closing: set when the session is closed: whoever waits then stops.
    """

    def __init__(self, rpc: Rpc, settings: Settings, project_settings: ProjectSettings) -> None:
        self.rpc = rpc
        self.settings = settings
        self.project_settings = project_settings
        self.closing = threading.Event()
        self._bridge: Bridge | None = None
        self._lock = threading.Lock()

    @property
    def bridge(self) -> Bridge:
        """The same in larger steps, on ``rpc``'s connections; made at first need."""
        with self._lock:
            if self._bridge is None:
                # Whoever lists batches, or waits for one, needs nothing of it.
                from boinc_gahp.bridge.bridge import Bridge  # noqa: PLC0415

                cache = _cache_dir(self.settings)
                self._bridge = Bridge(self.rpc, self.settings, None, cache, self.project_settings)
            return self._bridge

    def close(self) -> None:
        """Close the connections; a second time does nothing."""
        self.closing.set()
        with self._lock:
            if self._bridge is not None:
                self._bridge.close()
        self.rpc.close()


def open_session(
    url: str,
    authenticator: str | Authenticator,
    settings: Settings | None = None,
    name: str | None = None,
) -> Session:
    """Return a session; nothing is asked of the project yet.

    There is no ledger in it: a person or a program sees what became of a batch on the project
    itself, and a batch that somebody looks at must not be aborted by a daemon that finds it in a
    ledger as one that nobody asks about.

    Args:
        url: the project's address.
        authenticator: the account's.
        settings: None: the defaults. Where they have this project, its certificates, proxy and
            sizes are those that they say.
        name: of the section ``[projects.NAME]`` to look at first.

    Raises:
        BadRequest: ``url`` is no project's address.
    """
    settings = settings or Settings()
    if not isinstance(authenticator, Authenticator):
        authenticator = Authenticator(authenticator)
    project_settings = project_at(settings, ProjectUrl(url), authenticator, name)
    options = ClientOptions.of(settings, project_settings)
    rpc = Rpc(project_settings.url, authenticator, options=options)
    return Session(rpc, settings, project_settings)


def _cache_dir(settings: Settings) -> Path | None:
    """Return the cache's directory, or None for a user without a home: only time is lost."""
    try:
        return cache_dir(settings)
    except ConfigError:
        return None
