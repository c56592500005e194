"""What the modules of this room share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.submit.digests import Digests
from boinc_gahp.submit.staging import Uploads

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.config import ProjectSettings, Settings
    from boinc_gahp.ledger import Ledger
    from boinc_gahp.rpc import WebRpcs
    from boinc_gahp.submit.project_cache import ProjectCache


@dataclass(frozen=True, slots=True)
class Context:
    """A project as one account sees it, and what belongs to them on this machine.

    Attributes:
        project: the web RPCs, with the account's authenticator in them.
        settings: all settings.
        project_settings: the project's own settings.
        ledger: the ledger, which outlives the process; None if there is none.
        cache: what this process has learned from the project.
        cache_dir: the user's cache directory (may be missing on disk), or None to do without.
        digests: MD5s of local files.
        uploads: the files that threads of this process are sending.
    """

    project: WebRpcs
    settings: Settings
    project_settings: ProjectSettings
    ledger: Ledger | None
    cache: ProjectCache
    cache_dir: Path | None
    digests: Digests = field(default_factory=lambda: Digests(None))
    uploads: Uploads = field(default_factory=Uploads)

    @property
    def owner(self) -> tuple[str, str]:
        """The first two arguments of the ledger's methods: project URL and account."""
        return self.project.url, self.project.account
