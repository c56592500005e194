"""What the modules of this room share."""

from __future__ import annotations

import logging
import math
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.errors import LedgerError
from boinc_gahp.submit.digests import Digests
from boinc_gahp.submit.project_cache import Recent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.ledger.ledger import Ledger
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.submit.generated_files import GeneratedFiles
    from boinc_gahp.submit.project_cache import ProjectCache

log = logging.getLogger("boinc_gahp.submit")

#: For how many names it is remembered when they were last sent.
_LANDED = 20_000


class Uploads:
    """Physical names that threads of this process are sending, so that no file is sent twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._released = threading.Condition(self._lock)
        #: Names, each with the mark of the claim that it is in.
        self._flying: dict[str, object] = {}
        self._landed: Recent[str, float] = Recent(_LANDED)

    @contextmanager
    def claim(self, names: Iterable[str], asked_at: float) -> Iterator[dict[str, object]]:
        """Yield those of ``names`` that nobody is sending; the caller has them until released.

        The end of the block releases them, too. The values are one mark for this claim.
        ``asked_at`` is when the project was asked for the names (:func:`time.monotonic`); a name
        that was released after that is left out, because it has to be asked for again.
        """
        with self._lock:
            free = (
                name
                for name in names
                if name not in self._flying and (self._landed.get(name) or -math.inf) < asked_at
            )
            mine = dict.fromkeys(free, object())
            self._flying.update(mine)
        try:
            yield mine
        finally:
            self.release(mine, list(mine))

    def release(self, mine: dict[str, object], names: Iterable[str]) -> None:
        """Take ``names`` out of a claim, so that others can go on with them."""
        with self._lock:
            now = time.monotonic()
            for name in names:
                del self._flying[name]
                self._landed.set(name, now)
                del mine[name]
            self._released.notify_all()

    def wait(self, names: Iterable[str], timeout: float) -> None:
        """Wait until other threads have sent those of ``names`` that they are sending."""
        with self._lock:
            claims = {name: self._flying[name] for name in names if name in self._flying}
            self._released.wait_for(
                lambda: all(self._flying.get(name) is not claim for name, claim in claims.items()),
                timeout,
            )


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
        made: files that are made for container jobs.
        reconciling: held by the thread that sends requests that are owed to the project.
    """

    project: WebRpcs
    settings: Settings
    project_settings: ProjectSettings
    ledger: Ledger | None
    cache: ProjectCache
    cache_dir: Path | None
    made: GeneratedFiles
    digests: Digests = field(default_factory=lambda: Digests(None))
    uploads: Uploads = field(default_factory=Uploads)
    reconciling: threading.Lock = field(default_factory=threading.Lock)

    @property
    def owner(self) -> tuple[str, str]:
        """The first two arguments of the ledger's methods: project URL and account."""
        return self.project.url, self.project.account

    def note(self, write: Callable[[Ledger], object], otherwise: str) -> None:
        """Write to the ledger, if there is one; if that fails, the work goes on.

        Args:
            write: writes.
            otherwise: what a failure means, for the log.
        """
        if self.ledger is None:
            return
        try:
            write(self.ledger)
        except LedgerError as error:
            log.warning("%s; %s", error, otherwise)
