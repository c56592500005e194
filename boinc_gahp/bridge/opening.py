"""Opens bridges from settings: with the ledger and the directories that one process shares."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from boinc_gahp.bridge.bridge import Bridge
from boinc_gahp.config import cache_dir, ledger_file
from boinc_gahp.config.accounts import authenticator_of
from boinc_gahp.ledger import Ledger
from boinc_gahp.rpc import ClientOptions, WebRpcs

if TYPE_CHECKING:
    from boinc_gahp.config import ProjectSettings, Settings


class Opener:
    """Makes the bridges of one process; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None

    def open(self, settings: Settings, project: ProjectSettings) -> Bridge:
        """Return a new bridge to ``project``.

        Raises:
            ConfigError: it has no authenticator.
            LedgerError: the ledger cannot be used where it is; says which setting to change.
        """
        authenticator = authenticator_of(settings, project)
        options = ClientOptions.of(settings, project)
        ledger = self.ledger(settings)
        return Bridge(
            WebRpcs(project.url, authenticator, options=options),
            settings,
            ledger,
            cache_dir(settings),
            project,
        )

    @staticmethod
    def are_alike(
        one: tuple[Settings, ProjectSettings], other: tuple[Settings, ProjectSettings]
    ) -> bool:
        """Tell whether a bridge that was opened with ``one`` can be used for ``other``.

        This is only decided here: a bridge and its connections keep the settings that they were
        made with.
        """
        return _used(*one) == _used(*other)

    def ledger(self, settings: Settings) -> Ledger:
        """Return this process's ledger, opened at the first call; raises LedgerError."""
        with self._lock:
            if self._ledger is None:
                self._ledger = Ledger(ledger_file(settings))
            return self._ledger

    @property
    def opened(self) -> Ledger | None:
        """The ledger, if it was opened."""
        return self._ledger

    def close(self) -> None:
        """Close the ledger, for programs that make several of these in one process."""
        with self._lock:
            if self._ledger is not None:
                self._ledger.close()


def _used(settings: Settings, project: ProjectSettings) -> tuple[object, ...]:
    """Return the settings that a bridge and its connections use."""
    options = ClientOptions.of(settings, project)
    return options, project, settings.timeouts, settings.staging, settings.jobs
