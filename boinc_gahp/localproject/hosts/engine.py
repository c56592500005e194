"""The container engine of the machine that all hosts are on: which there is, and what it keeps.

Like BOINC's client, a host looks for podman, else docker, and tries whether it answers. It looks
only once the project has a container app, and once for all hosts.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from boinc_gahp.localproject.core import Database

log = logging.getLogger("boinc_gahp.localproject")

#: What shows each engine's version only if the engine answers.
_ANSWERS = {
    "podman": ("info", "--format", "{{.Version.Version}}"),
    "docker": ("version", "--format", "{{.Server.Version}}"),
}
_TIMEOUT = 60.0
#: Names of a client's containers and images begin with it.
_PREFIX = "boinc__"
_PAUSE = 0.1

#: The part of a version's plan class that means a container app.
CONTAINERS = "docker"
#: The app to which all BUDA apps belong (:mod:`boinc_gahp.localproject.buda`).
BUDA = "buda"

#: The versions that clients without and with an engine claim, by BOINC's number.
CLIENTS = {72005: "7.20.5", 80300: "8.3.0"}
WITHOUT, WITH = CLIENTS


@dataclass(frozen=True, slots=True)
class Engine:
    """A container engine that answers.

    Attributes:
        name: ``podman`` or ``docker``, which is also the program's name in the PATH.
        version: its version.
    """

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def run(self, *arguments: str) -> str:
        """Run the engine; return what it prints, '' if it fails."""
        try:
            done = subprocess.run(
                [self.name, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("%s: %s", self.name, error)
            return ""
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()
            log.debug("%s %s: %s", self.name, " ".join(arguments), said)
            return ""
        return done.stdout.decode("utf-8", "replace")


def find_engine() -> Engine | None:
    """Return podman if it answers, else docker if that does."""
    for name, question in _ANSWERS.items():
        if shutil.which(name) is None:
            continue
        version = Engine(name, "").run(*question).strip()
        if version:
            return Engine(name, version)
        log.warning("%s is installed, but does not answer", name)
    return None


def container_apps(connection: sqlite3.Connection) -> list[str]:
    """Return the apps that need a container engine, the oldest first."""
    rows = connection.execute(
        "SELECT name FROM app WHERE id IN "
        "(SELECT appid FROM app_version WHERE instr(plan_class, ?)) ORDER BY id",
        (CONTAINERS,),
    )
    return [row["name"] for row in rows]


def engine_notice(connection: sqlite3.Connection, *, running: bool = True) -> str:
    """Return what to do if there is a container app and no engine for its jobs; '' if there is.

    As long as no host has looked, or if the project is not running, only the PATH is searched.
    """
    if not container_apps(connection):
        return ""
    rows = connection.execute("SELECT docker_version FROM host WHERE active").fetchall()
    looked = [row[0] for row in rows if running and row[0] is not None]
    if any(looked) or (not looked and any(map(shutil.which, _ANSWERS))):
        return ""
    return (
        "Jobs that need containers wait: neither podman nor docker answers on this machine. "
        "Install one (apt install podman, or dnf install podman), and start the project again."
    )


class Containers:
    """What all hosts of one project share: the engine, its images, and whose containers are whose.

    Attributes:
        project: the part of the names of containers and images that tells this project's from
            others' on the machine; a client has the project's address there.
        found: the engine, if somebody has looked and there is one.
    """

    def __init__(self, database: Database, directory: Path) -> None:
        self._database = database
        path = str(directory.resolve()).encode("utf-8", "surrogateescape")
        self.project = f"local_{hashlib.sha256(path).hexdigest()[:12]}"
        self._lock = threading.Lock()
        self._looked = False
        self.found: Engine | None = None
        self._building: dict[str, threading.Lock] = {}

    def engine(self) -> Engine | None:
        """Return the engine, looking for it the first time; and tell all hosts."""
        with self._lock:
            if not self._looked:
                self.found = find_engine()
                self._looked = True
                self._tell()
            return self.found

    def _tell(self) -> None:
        """Let every host that works offer the engine, as a newer client does."""
        engine = self.found
        with self._database.write() as connection:
            connection.execute(
                "UPDATE host SET docker_version = ?, core_client_version = ? WHERE active",
                (str(engine or ""), WITHOUT if engine is None else WITH),
            )
            notice = engine_notice(connection)
        if notice:
            log.warning("%s", notice)

    def needed(self) -> bool:
        """Whether to look for an engine now."""
        return not self._looked and bool(container_apps(self._database.connection()))

    @contextmanager
    def building(self, image: str, stop: threading.Event) -> Iterator[bool]:
        """Keep other hosts from building an image meanwhile; False if ``stop`` was set first."""
        with self._lock:
            lock = self._building.setdefault(image, threading.Lock())
        mine = False
        while not mine and not stop.is_set():
            mine = lock.acquire(timeout=_PAUSE)
        try:
            yield mine
        finally:
            if mine:
                lock.release()

    def built(self, image: str) -> None:
        """Remember that an image was built for this project: it is removed when that ends.

        An image with another name than BOINC gives may be somebody's; a client leaves it, too.
        """
        if not image.startswith(_PREFIX):
            return
        known = self._database.connection().execute("SELECT 1 FROM image WHERE name = ?", (image,))
        if known.fetchone() is None:
            with self._database.write() as connection:
                connection.execute("INSERT OR IGNORE INTO image VALUES (?)", (image,))

    def remove_all(self) -> None:
        """Remove this project's containers and images, whatever state they are in; nothing else.

        An image that somebody else's container uses stays.
        """
        engine = self.found
        if engine is None:
            return
        names = engine.run(
            "ps", "--all", "--filter", f"name=^{_PREFIX}{self.project}__", "--format", "{{.Names}}"
        )
        for name in names.split():
            remove_container(engine, name)
        rows = self._database.connection().execute("SELECT name FROM image").fetchall()
        for row in rows:
            engine.run("image", "rm", row["name"])
        if rows:
            with self._database.write() as connection:
                connection.execute("DELETE FROM image")


def remove_container(engine: Engine, name: str) -> None:
    """End a container at once, and remove it; it may not exist."""
    at_once = ("--time", "0") if engine.name == "podman" else ()
    if not engine.run("rm", "--force", *at_once, name):
        # Older versions of podman have no such option, and wait ten seconds.
        engine.run("kill", name)
        engine.run("rm", "--force", name)
