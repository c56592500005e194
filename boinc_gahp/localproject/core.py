"""What every part of the project uses: its directory, database, files and switches."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from boinc_gahp.localproject.database import Database
from boinc_gahp.localproject.server.addresses import HostNames
from boinc_gahp.localproject.store import FileStore
from boinc_gahp.templates.reading import read_input_template, read_output_template

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.localproject.php import Php
    from boinc_gahp.templates.types import InputTemplate, OutputTemplate

    #: A file's modification time and inode.
    Stamp = tuple[int, int]

T = TypeVar("T")

#: Templates kept in memory.
_REMEMBERED = 1000
#: The directory of the supplied apps.
APPS = Path(__file__).parent / "apps"


class Core:
    """The project without its threads.

    Attributes:
        url: the project's address, with a final slash.
        web_stopped: every RPC answers -183, as after ``bin/stop`` with the web page stopped.
        database_down: every RPC answers -138.
        wake: set when there is work for the back end or for volunteers.
        local_files: the only directory whose files the mode ``local`` may name.
        names: the names that clients may use for it, in the Host header.
    """

    def __init__(self, directory: Path, php: Php) -> None:
        self.directory = directory
        self.php = php
        self.url = "http://127.0.0.1/test/"
        self.web_stopped = False
        self.database_down = False
        self.names = HostNames()
        self.wake = Wake()
        self.local_files = directory / "local"
        self.templates = directory / "templates"
        self.download = FileStore(directory / "download", directory / "spool")
        self.upload = FileStore(directory / "upload", directory / "spool")
        self.db = Database(directory / "project.sqlite")
        self._templates_read: dict[tuple[Path, object], tuple[Stamp, Any]] = {}

    @property
    def upload_url(self) -> str:
        """The upload handler's address for result documents."""
        return f"{self.url.rstrip('/')}_cgi/file_upload_handler"

    def input_template(self, path: Path) -> InputTemplate:
        """Read an input template file; it is read again when it changes.

        Raises:
            OSError: it cannot be read.
            TemplateError: it is wrong.
        """
        return self._read(path, read_input_template)

    def output_template(self, path: Path) -> OutputTemplate:
        """Read an output template file, like :meth:`input_template`."""
        return self._read(path, read_output_template)

    def is_deliverable(self, path: Path) -> bool:
        """Whether the scheduler can deliver results of an output template file.

        A newline has to follow ``<result>`` (``containers.rst``, "Files").
        """
        return self._read(path, _is_deliverable)

    def _read(self, path: Path, read: Callable[[str], T]) -> T:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_ino)
        known: tuple[Stamp, T] | None = self._templates_read.get((path, read))
        if known is None or known[0] != stamp:
            if len(self._templates_read) >= _REMEMBERED:
                # Jobs may have templates of their own, each a different one.
                self._templates_read.clear()
            known = (stamp, read(path.read_text("utf-8", "replace")))
            self._templates_read[path, read] = known
        return known[1]


def _is_deliverable(text: str) -> bool:
    return "<result>\n" in text


class Wake:
    """A bell for the back end and the volunteers: each waits for the next ring, or a while."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rings = 0

    def ring(self) -> None:
        """Wake all who wait."""
        with self._condition:
            self._rings += 1
            self._condition.notify_all()

    def count(self) -> int:
        """Return the number of rings so far; later rings wake whoever waits with this number."""
        with self._condition:
            return self._rings

    def wait(self, seen: int, timeout: float) -> None:
        """Return after a ring later than ``seen``, or after ``timeout`` s."""
        with self._condition:
            self._condition.wait_for(lambda: self._rings != seen, timeout)
