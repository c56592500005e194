"""What every part of the project uses: its directory, database, files, names and switches."""

from __future__ import annotations

import socket
import sqlite3
import sys
import threading
import time
import unicodedata
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from boinc_gahp.localproject.errors import LocalProjectTrouble, with_advice
from boinc_gahp.localproject.store import FileStore
from boinc_gahp.templates.reading import read_input_template, read_output_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from boinc_gahp.templates.types import InputTemplate, OutputTemplate


@dataclass(frozen=True, slots=True)
class Php:
    """Settings of php.ini, with the values that ``docs/project-admins.rst`` recommends.

    Sizes are bytes. With ``display_errors`` replies contain PHP's messages, and a fatal error is
    HTTP 200 with its text; without, HTTP 500 with the beginning of a reply (``web-rpcs.rst``,
    "Transport and framing").
    """

    display_errors: bool = False
    upload_max_filesize: int = 1 << 30
    post_max_size: int = 1 << 30


#: As PHP and a project's template are shipped; the recordings (``wire/NAME``) are of this one.
STOCK = Php(display_errors=True, upload_max_filesize=2 << 20, post_max_size=8 << 20)

HOST = "127.0.0.1"


def _is_address(name: str, *, anywhere: bool = False) -> bool:
    """Whether a name is a loopback address, which other machines cannot reach, or any address."""
    try:
        return ip_address(name).is_loopback or anywhere
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class HostNames:
    """Names of a project; its loopback addresses, or all addresses, count too: nobody owns them."""

    names: frozenset[str] = frozenset({"localhost"})
    all_addresses: bool = False

    def __contains__(self, name: str) -> bool:
        plain = name.lower().rstrip(".")
        return plain in self.names or _is_address(plain, anywhere=self.all_addresses)


def names_of(listen: str, more: Iterable[str] = ()) -> HostNames:
    """Return the names of a project that listens on ``listen``; ``more`` are further ones.

    If other machines can reach it, it answers to all addresses and to the machine's names.
    """
    names = {"localhost", *(name.lower().rstrip(".") for name in (listen, *more))}
    if listen == "localhost" or _is_address(listen):
        return HostNames(frozenset(names))
    names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return HostNames(frozenset(names - {""}), all_addresses=True)


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now."""
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


#: Changes with schema.sql: a project is for experiments, and a new one is made in a second.
SCHEMA_VERSION = 10


# NORMAL with a write-ahead log survives the end of the process at any point; only a power cut may
# lose the last transactions. Checkpoints take most time: do them after 8,000 pages, not 1,000.
_SETTINGS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 8000;
PRAGMA foreign_keys = ON;
"""


class Database:
    """Connections and transactions.

    Raises:
        LocalProjectTrouble: it is of another version, or not a database of this program.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._write_lock = threading.Lock()
        try:
            # It holds authenticators; files that SQLite puts beside it get the same mode.
            if not path.exists():
                path.touch(mode=0o600)
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise LocalProjectTrouble(f"{path} cannot be opened: {with_advice(error)}") from error

    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection, in autocommit mode."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(
                self.path, timeout=30, isolation_level=None, check_same_thread=False
            )
            try:
                connection.row_factory = sqlite3.Row
                connection.executescript(_SETTINGS)
                connection.create_function("clock", 0, time.time)
            except BaseException:
                connection.close()
                raise
            self._local.connection = connection
            self._connections.append(connection)
        return connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run the body in one write transaction: all of it happens, or nothing.

        Raises:
            sqlite3.OperationalError: it could not be written, as on a full disk.
        """
        connection = self.connection()
        with self._write_lock:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # On a full disk SQLite may already have rolled back.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Run the body on one snapshot."""
        connection = self.connection()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close all connections; no thread may use the database after that."""
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        self._local = threading.local()

    def _prepare(self) -> None:
        """Make the tables of a new database; refuse one of another version."""
        connection = self.connection()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            self.close()
            raise LocalProjectTrouble(
                f"{self.path} was made by another version of boinc_gahp (its schema is {version}, "
                f"this one's {SCHEMA_VERSION}): use that version, or make a new project in another "
                "directory (boinc_gahp local-project init)"
            )
        if version == 0:
            script = (resources.files(__package__) / "schema.sql").read_text("utf-8")
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;"
            )


T = TypeVar("T")

#: ``job_file.name``, ``workunit.name`` and ``result.name`` are varchar(191).
MAX_NAME = 191
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
        return _read(path, read_input_template)

    def output_template(self, path: Path) -> OutputTemplate:
        """Read an output template file, like :meth:`input_template`."""
        return _read(path, read_output_template)

    def is_deliverable(self, path: Path) -> bool:
        """Whether the scheduler can deliver results of an output template file.

        A newline has to follow ``<result>`` (``containers.rst``, "Files").
        """
        return _read(path, _is_deliverable)


def _read(path: Path, read: Callable[[str], T]) -> T:
    """Return what a template file holds; it is read again when it changes."""
    status = path.stat()
    return cast("T", _template(path, read, status.st_mtime_ns, status.st_ino))


# Jobs may have templates of their own, each a different one.
@lru_cache(maxsize=1000)
def _template(path: Path, read: Callable[[str], object], _mtime_ns: int, _inode: int) -> object:
    return read(path.read_text("utf-8", "replace"))


def _is_deliverable(text: str) -> bool:
    return "<result>\n" in text


def name_key(name: str) -> str:
    """Return a key that is equal for names that MariaDB's utf8mb4_unicode_ci considers equal.

    Case, accents and trailing spaces are ignored (``web-rpcs.rst``, "create_batch").
    """
    decomposed = unicodedata.normalize("NFKD", name)
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return plain.casefold().rstrip(" ")


def fill_in(word: str, directory: Path) -> str:
    """Return a word of an app's command with its placeholders filled in.

    ``{python}`` is this interpreter, ``{apps}`` the directory of the supplied apps, ``{project}``
    the project's ``directory``.
    """
    word = word.replace("{python}", sys.executable).replace("{apps}", str(APPS))
    # Resolving asks the system about each part of the path.
    return word.replace("{project}", str(directory.resolve())) if "{project}" in word else word


class Wake:
    """A bell for the back end and the volunteers: each waits for the next ring, or a while.

    Attributes:
        rings: the number of rings so far; later ones wake whoever waits with this number.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.rings = 0

    def ring(self) -> None:
        """Wake all who wait."""
        with self._condition:
            self.rings += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Return after a ring later than ``seen``, or after ``timeout`` s."""
        with self._condition:
            self._condition.wait_for(lambda: self.rings != seen, timeout)
