"""The loaded settings, a context for each project in use, and the service for HTCondor's jobs."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from boinc_gahp.config.accounts import authenticator_of, find_project, project_at
from boinc_gahp.config.settings import LimitSettings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import BadRequest, ConfigError, GahpError, LedgerError
from boinc_gahp.secret import Authenticator
from boinc_gahp.threads import start

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.fetch.context import FetchContext, Opener
    from boinc_gahp.gahp.boinc_commands import SelectProject
    from boinc_gahp.htcondor.refusals import Refusals
    from boinc_gahp.htcondor.service import Service

log = logging.getLogger("boinc_gahp.daemon")

#: Seconds from a project's first use until its pending aborts are checked first.
FIRST_RECONCILE = 1.0
#: Seconds between these checks; one reads a row of the ledger if no abort is due.
RECONCILE_INTERVAL = 10.0


class Projects:
    """Thread-safe. All but :attr:`limits` is for worker threads: it may wait for disk or network.

    Args:
        load_settings: reads the settings. If it fails, the next request calls it again, so that it
            is enough to mend the settings file.
        on_settings: called once with the settings, before they are used.
    """

    def __init__(
        self,
        load_settings: Callable[[], Settings],
        on_settings: Callable[[Settings], object] = lambda _settings: None,
    ) -> None:
        self._load_settings = load_settings
        self._on_settings = on_settings
        #: Guards what follows. Held while settings are read, and while a context is opened or the
        #: service made: all of them share the disk with the ledger.
        self._lock = threading.RLock()
        self._settings: Settings | None = None
        self._opener: Opener | None = None
        self._contexts: dict[tuple[str, str], FetchContext] = {}
        self._service: Service | None = None
        self._refusals: Refusals | None = None
        self._closing = threading.Event()

    @property
    def limits(self) -> LimitSettings:
        """The limits in the settings; until they are loaded, the defaults. Never waits."""
        return LimitSettings() if self._settings is None else self._settings.limits

    def prepare(self) -> None:
        """Start loading the settings, and the modules for requests, in a thread of its own."""
        start(self._prepare, "settings")

    def settings(self) -> Settings:
        """Return the settings; raises ConfigError."""
        with self._lock:
            if self._settings is None:
                settings = self._load_settings()
                self._on_settings(settings)
                self._settings = settings
            return self._settings

    def context(self, selection: SelectProject | None) -> FetchContext:
        """Return the context of the selected project, or to the project in the settings.

        Raises:
            GahpError: there is no project, or it cannot be opened; says what to do.
        """
        settings = self.settings()
        try:
            return self._context(settings, selection)
        except (ConfigError, LedgerError):
            # Whatever was wrong with them may be mended by now.
            anew = self._read_again(settings)
            if anew == settings:
                raise
            return self._context(anew, selection)

    def _context(self, settings: Settings, selection: SelectProject | None) -> FetchContext:
        project = _project_for(settings, selection)
        key = project.url, authenticator_of(settings, project).account
        with self._lock:
            if key not in self._contexts:
                context = self._contexts[key] = self._one_opener().open(settings, project)
                start(partial(self._reconcile, context), f"reconciling {project.url}")
            return self._contexts[key]

    def refusals(self) -> Refusals:
        """Return the service for use by a gridmanager; never fails."""
        if self._refusals is None:
            from boinc_gahp.htcondor.refusals import Refusals  # noqa: PLC0415  (as the service)

            with self._lock:
                self._refusals = self._refusals or Refusals(self.service)
        return self._refusals

    def service(self) -> Service:
        """Return the service for HTCondor's jobs; the first call makes it.

        Raises:
            GahpError: it cannot be made; the next call tries again.
        """
        if self._service is None:
            with self._lock:
                self._service = self._service or self._new_service(self.settings())
        return self._service

    def close_service(self, timeout: float | None) -> None:
        """Close the service, if there is one; return after ``timeout`` seconds at the latest."""
        if self._refusals is not None:
            self._refusals.close()
        if self._service is not None:
            start(self._service.close, "closing the service").join(timeout)

    def close(self) -> None:
        """Close all contexts, and the service."""
        self._closing.set()
        self.close_service(None)
        with self._lock:
            for context in self._contexts.values():
                context.close()

    def _read_again(self, before: Settings) -> Settings:
        """Return the current settings, if nobody has read them since ``before``."""
        with self._lock:
            if self._settings is before:
                settings = self._load_settings()
                opened = self._opener is not None and self._opener.opened is not None
                self._settings = replace(settings, state=before.state) if opened else settings
            return self._settings or before

    def _prepare(self) -> None:
        try:
            self.settings()
        except GahpError as error:
            log.error("%s", error)
        except Exception:  # the first request will fail with it and tell the user
            log.exception("the settings could not be loaded")
        import_module("boinc_gahp.daemon._dispatch")
        self._one_opener()

    def _one_opener(self) -> Opener:
        """Return the opener for all projects of this process: they share its ledger."""
        from boinc_gahp.fetch.context import Opener  # noqa: PLC0415  (heavy: after the banner)

        with self._lock:
            if self._opener is None:
                self._opener = Opener()
                start(partial(self._housekeeping, self._opener), "ledger")
            return self._opener

    def _new_service(self, settings: Settings) -> Service:
        from boinc_gahp.htcondor.service import Service  # noqa: PLC0415  (heavy: after the banner)

        return Service(settings, self._one_opener(), self._load_settings)

    def _housekeeping(self, opener: Opener) -> None:
        from boinc_gahp.daemon._housekeeping import ledger_housekeeping  # noqa: PLC0415  (after the banner)

        ledger_housekeeping(opener, lambda: self.settings().htcondor, self._closing)

    def _reconcile(self, context: FetchContext) -> None:
        from boinc_gahp.submit.control import reconcile  # noqa: PLC0415  (after the banner)

        delay = FIRST_RECONCILE
        while not self._closing.wait(delay):
            try:
                reconcile(context)
                context.tidy()
            except GahpError as error:
                log.warning("Aborts and retirements could not be sent to a project: %s", error)
            except Exception:  # the thread has to go on: the next abort may be another one
                log.exception("sending aborts and retirements to a project failed")
            delay = RECONCILE_INTERVAL


def _project_for(settings: Settings, selection: SelectProject | None) -> ProjectSettings:
    """Return the project with the authenticator to use; None: the one in the settings."""
    if selection is None:
        how = "name one with BOINC_SELECT_PROJECT url authenticator"
        return find_project(settings, None, how, of_settings=False)[1]
    if selection.authenticator == Authenticator(""):
        raise BadRequest("the authenticator that BOINC_SELECT_PROJECT named is empty")
    return project_at(settings, ProjectUrl(selection.url), selection.authenticator)
