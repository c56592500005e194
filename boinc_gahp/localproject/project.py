"""A local project as one object: start it, use it, stop it."""

from __future__ import annotations

import logging
import os
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from boinc_gahp.extras import need_extra
from boinc_gahp.localproject import accounts, directory as layout, new_app
from boinc_gahp.localproject.backend.scheduler import Scheduler
from boinc_gahp.localproject.backend.supervisor import Supervisor
from boinc_gahp.localproject.core import HOST, Core, Php, names_of
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.localproject.hosts import hosts
from boinc_gahp.localproject.hosts.engine import Containers, engine_notice
from boinc_gahp.localproject.hosts.volunteer import Volunteer, clean_up
from boinc_gahp.threads import start

# Only the web server needs the extra: all commands show their help without it.
need_extra("local-project", "a local project", "flask", "waitress")
from boinc_gahp.localproject.server.application import make_app  # noqa: E402
from boinc_gahp.serving import WebServer, port_is_free  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from threading import Thread

log = logging.getLogger("boinc_gahp.localproject")

_STOP_TIMEOUT = 20.0
#: How many requests are worked on at a time.
_THREADS = 24


class LocalProject:
    """A BOINC project on this machine: web server, database, back end and volunteers.

    The directory is made if it is new; a project that was stopped, or killed, continues where it
    was. Use it as a context manager: inside, it answers; afterwards no thread, process or socket of
    it is left.

    Args:
        directory: the project's directory.
        port: the port to listen on; 0: the last one, if that is free, or any port.
        hosts: number of volunteers.
        php: the settings of PHP; None: the recommended ones.
        listen: the address of this machine to listen on.
        names: further names of its machine that clients use; it answers to no other name.

    Attributes:
        url: the project's address, with a final slash; known once it has started.
        authenticator: the submitter's.

    Raises:
        LocalProjectTrouble: the directory is in use, or holds something else, or a project of
            another version.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        port: int = 0,
        hosts: int = 4,
        php: Php | None = None,
        listen: str = HOST,
        names: Iterable[str] = (),
    ) -> None:
        directory = Path(directory)
        self._lock = layout.lock(directory)
        try:
            layout.make(directory)
            self._core = Core(directory, php or Php())
            self._core.names = names_of(listen, names)
        except BaseException:
            self._lock.close()
            raise
        self.directory = directory
        self._wanted_port = port
        self._listen = listen
        self._hosts = hosts
        self._server: WebServer | None = None
        self._supervisor = Supervisor(self._core)
        self._containers = Containers(self._core.db, directory)
        self._volunteers: list[Volunteer] = []
        self._threads: list[Thread] = []
        self._failure: BaseException | None = None

    @property
    def url(self) -> str:
        """The project's address."""
        return self._core.url

    @property
    def port(self) -> int:
        """The port on which it listens; 0 before it has started."""
        return self._server.port if self._server else 0

    @property
    def authenticator(self) -> str:
        """The submitter's authenticator."""
        return self.authenticator_of(accounts.SUBMITTER)

    @property
    def core(self) -> Core:
        """Database, files and switches, for tests that look inside."""
        return self._core

    def __enter__(self) -> LocalProject:
        """Start; return when it answers.

        Raises:
            OSError: the requested port is not free.
        """
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Stop; raise the exception that ended one of its threads, unless there is one already."""
        self.close()
        if error[0] is None:
            self.check()

    def check(self) -> None:
        """Raise LocalProjectTrouble if a thread of the project has died."""
        if self._failure is not None:
            raise LocalProjectTrouble(
                f"a part of the project failed: {self._failure}"
            ) from self._failure
        if self._server is not None and not self._server.running():
            raise LocalProjectTrouble("the web server has stopped")

    def close(self) -> None:
        """Stop all threads and processes; a second time does nothing."""
        with ExitStack() as last:
            last.callback(self._lock.close)
            last.callback(self._core.db.close)
            last.callback(self._containers.remove_all)
            for thread in self._threads:
                last.callback(thread.join, _STOP_TIMEOUT)
            for volunteer in self._volunteers:
                volunteer.stop()
            self._supervisor.stop()
            if self._server is not None:
                self._server.stop()
            self._server, self._threads = None, []

    def _start(self) -> None:
        port = self._wanted_port
        if port == 0:
            last = urlsplit(accounts.remembered_url(self.directory)).port or 0
            port = last if port_is_free(last, self._listen) else 0
        self._core.download.clear_spool()
        self._server = WebServer(
            make_app(self._core),
            port,
            self._listen,
            threads=_THREADS,
            name="boinc_gahp local project",
        )
        self._core.url = accounts.project_url(self._server.port, self._listen)
        accounts.write_settings(self.directory, self._core.db.connection(), self._core.url)
        self._server.start()
        self._run(self._supervisor.run, "localproject-backend")
        scheduler = Scheduler(self._core)
        ids = hosts.register(self._core.db, self._hosts)
        if ids and self._containers.needed():
            self._containers.engine()
            # A project that was killed has left them.
            self._containers.remove_all()
        clean_up(self.directory / "slots", hosts.results_in_progress(self._core.db))
        for number, host_id in enumerate(ids):
            slot = self.directory / "slots" / str(number)
            volunteer = Volunteer(self._core, scheduler, host_id, slot, self._containers)
            self._volunteers.append(volunteer)
            self._run(volunteer.run, f"localproject-host-{number}")

    def _run(self, work: Callable[[], None], name: str) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as error:
                log.exception("the thread %s has failed", name)
                self._failure = self._failure or error

        self._threads.append(start(guarded, name))

    def notice(self) -> str:
        """Return what to do so that all jobs can run; '' if there is nothing to do."""
        return engine_notice(self._core.db.connection())

    # Actions on a project for tests and the demo.

    def add_user(self, name: str, **rights: Any) -> str:
        """Add a user and return the authenticator; rights as in :func:`accounts.add_user`."""
        return accounts.add_user(self._core.db, name, **rights)

    def authenticator_of(self, name: str) -> str:
        """Return a user's authenticator."""
        row = (
            self._core.db.connection()
            .execute("SELECT authenticator FROM user WHERE name = ?", (name,))
            .fetchone()
        )
        if row is None:
            raise KeyError(name)
        return str(row["authenticator"])

    def add_app(
        self,
        name: str,
        command: str | Sequence[str | os.PathLike[str]],
        inputs: Iterable[str] | str = (),
        outputs: Iterable[str] | str = (),
        *,
        optional_outputs: Iterable[str] | str = (),
        **more: Any,
    ) -> None:
        """Add an app; it can be used at once.

        ::

            project.add_app("sort", "sort -g -o sorted numbers", ["numbers"], ["sorted"])

        Args:
            name: letters, digits, ``_``, ``-`` and ``.``.
            command: the program and its arguments, as typed in a shell, or as a list; no shell runs
                it. The job's own arguments follow. ``{python}``, ``{apps}`` and ``{project}`` stand
                for this Python, the supplied apps and the project's directory. Files that it names
                by a relative path are looked for in the current directory.
            inputs: the names under which the program reads its input files.
            outputs: the names under which it writes its output files.
            optional_outputs: outputs that may be missing.
            more: attributes of :class:`.new_app.NewApp`, such as ``quorum`` and ``max_nbytes``.

        Raises:
            ValueError: the name, the program or a file's name is wrong, or there is an app with
                this name; nothing was added.
        """
        if not isinstance(command, str):
            command = shlex.join([os.fspath(word) for word in command])
        needed, optional = _names(outputs), _names(optional_outputs)
        app = new_app.NewApp(
            name,
            command=command,
            inputs=_names(inputs),
            outputs=(*((each, False) for each in needed), *((each, True) for each in optional)),
            **more,
        )
        new_app.add(self._core, app)

    def add_container_app(self, name: str, **more: Any) -> None:
        """Add an app for jobs in containers; ``more``: attributes of :class:`.new_app.NewApp`."""
        new_app.add(self._core, new_app.NewApp(name, container=True, **more))

    def pause_volunteers(self) -> None:
        """Stop volunteers from asking for more work; they finish what they have."""
        for volunteer in self._volunteers:
            volunteer.pause(True)

    def resume_volunteers(self) -> None:
        """Let volunteers work again."""
        for volunteer in self._volunteers:
            volunteer.pause(False)
        self._core.wake.ring()


def _names(names: Iterable[str] | str) -> tuple[str, ...]:
    """Return names as a tuple; a single one counts as one name, not as letters."""
    return (names,) if isinstance(names, str) else tuple(names)
