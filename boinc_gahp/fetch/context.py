"""What all modules of this room share, and how it is opened for a project."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.config.accounts import authenticator_of
from boinc_gahp.config.places import cache_dir, ledger_file, state_dir
from boinc_gahp.config.settings import ProjectSettings
from boinc_gahp.fetch._placed import PlacedFiles
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.submit.context import Context, ProjectCache
from boinc_gahp.submit.digests import Digests
from boinc_gahp.submit.generated_files import GeneratedFiles
from boinc_gahp.submit.published import Published

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.config.settings import Settings


@dataclass(frozen=True, slots=True)
class FetchContext(Context):
    """A project as one account sees it, and what was fetched from it.

    Attributes:
        placed: the outputs that were put in place before.
    """

    placed: PlacedFiles = field(default_factory=lambda: PlacedFiles(None))

    @classmethod
    def of(
        cls,
        project: WebRpcs,
        settings: Settings,
        ledger: Ledger | None,
        cache_dir: Path | None,
        project_settings: ProjectSettings | None = None,
    ) -> FetchContext:
        """Return the context of a project; :meth:`close` closes the project.

        Args:
            project: the project with an account's authenticator.
            settings: all settings.
            ledger: the ledger; None if there is none: then nothing outlives this process.
            cache_dir: the user's cache directory, or None to do without.
            project_settings: the project's own settings; None: the defaults.

        Raises:
            ConfigError: the project's settings do not fit together.
        """
        project_settings = project_settings or ProjectSettings(project.url)
        return cls(
            project=project,
            settings=settings,
            project_settings=project_settings,
            ledger=ledger,
            cache=ProjectCache(project, settings.jobs.templates_cached),
            made=GeneratedFiles.of(state_dir(settings)),
            published=Published.of(settings, project_settings, project.account),
            digests=Digests(cache_dir if settings.staging.md5_cache else None),
            placed=PlacedFiles(cache_dir),
        )

    def close(self) -> None:
        """Close the connections to the project; the ledger stays open."""
        self.placed.close()
        self.project.close()


class Opener:
    """Opens the contexts of one process, which share its ledger; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None

    def open(self, settings: Settings, project: ProjectSettings) -> FetchContext:
        """Return a new context for ``project``.

        Raises:
            ConfigError: it has no authenticator.
            LedgerError: the ledger cannot be used where it is; says which setting to change.
        """
        authenticator = authenticator_of(settings, project)
        options = ClientOptions.of(settings, project)
        ledger = self.ledger(settings)
        rpcs = WebRpcs(project.url, authenticator, options=options)
        return FetchContext.of(rpcs, settings, ledger, cache_dir(settings), project)

    @staticmethod
    def are_alike(
        one: tuple[Settings, ProjectSettings], other: tuple[Settings, ProjectSettings]
    ) -> bool:
        """Tell whether a context that was opened with ``one`` can be used for ``other``.

        This is only decided here: a context and its connections keep the settings that they were
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
    """Return the settings that a context and its connections use."""
    options = ClientOptions.of(settings, project)
    return options, project, settings.timeouts, settings.staging, settings.jobs
