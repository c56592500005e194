"""What functions take of a project and an account, as one object; and making it."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.api.manifest_files import Manifests
from boinc_gahp.config.accounts import project_at
from boinc_gahp.config.places import cache_dir
from boinc_gahp.config.settings import ProjectSettings, Settings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import ConfigError
from boinc_gahp.rpc.client import WebRpcs as Rpc
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.secret import Authenticator

if TYPE_CHECKING:
    from boinc_gahp.fetch.context import FetchContext

#: Seconds that a project has at least to answer.
_LEAST = 0.1


class Session:
    """The state shared by all work with one project and one account; thread-safe.

    Attributes:
        rpc: the project's web RPCs.
        settings: all settings.
        project_settings: the project's own settings.
        manifests: what was submitted from this machine.
        closing: set when the session is closed; all waits then end.
    """

    def __init__(self, rpc: Rpc, settings: Settings, project_settings: ProjectSettings) -> None:
        self.rpc = rpc
        self.settings = settings
        self.project_settings = project_settings
        self.manifests = Manifests(rpc, settings)
        self.closing = threading.Event()
        self._context: FetchContext | None = None
        self._lock = threading.Lock()

    @property
    def context(self) -> FetchContext:
        """What submits and fetches need, over ``rpc``; made at first use."""
        with self._lock:
            if self._context is None:
                # Listing batches, or waiting for one, does not need it.
                from boinc_gahp.fetch.context import FetchContext  # noqa: PLC0415

                cache = None
                with suppress(ConfigError):  # a user without a home, which only costs time
                    cache = cache_dir(self.settings)
                self._context = FetchContext.of(
                    self.rpc, self.settings, None, cache, self.project_settings
                )
            return self._context

    def close(self) -> None:
        """Close the connections; a second time does nothing."""
        self.closing.set()
        with self._lock:
            if self._context is not None:
                self._context.close()
        self.rpc.close()


def impatient(settings: Settings, seconds: float) -> Settings:
    """Return settings with which requests to a project that does not answer are soon given up.

    Args:
        settings: the settings; shorter time limits in them remain.
        seconds: for all attempts of a request, and the longest silence in each.
    """
    limits = settings.timeouts
    shorter = replace(
        limits,
        connect=min(limits.connect, max(seconds, _LEAST)),
        read=min(limits.read, max(seconds, _LEAST)),
        retry=min(limits.retry, seconds),
    )
    return replace(settings, timeouts=shorter)


def open_session(
    url: str,
    authenticator: str | Authenticator,
    settings: Settings | None = None,
    name: str | None = None,
) -> Session:
    """Return a session; does not contact the project yet.

    It has no ledger: people and programs see on the project itself what became of a batch. A daemon
    that found the batch in a ledger might abort it, because no HTCondor job asks about it.

    Args:
        url: the project's address.
        authenticator: the account's authenticator.
        settings: None: the defaults. If they have this project, its certificates, proxy and sizes
            are used.
        name: the NAME of the section ``[projects.NAME]`` to try first.

    Raises:
        BadRequest: ``url`` is not a project's address.
    """
    settings = settings or Settings()
    if not isinstance(authenticator, Authenticator):
        authenticator = Authenticator(authenticator)
    project_settings = project_at(settings, ProjectUrl(url), authenticator, name)
    options = ClientOptions.of(settings, project_settings)
    rpc = Rpc(project_settings.url, authenticator, options=options)
    return Session(rpc, settings, project_settings)
