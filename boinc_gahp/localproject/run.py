"""``boinc_gahp local-project init`` and ``run``, without the parsing of their arguments."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from boinc_gahp.localproject import directory as layout
from boinc_gahp.localproject.server.addresses import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import FrameType

    from boinc_gahp.localproject.php import Php

_CHECK_EVERY = 1.0


def init_project(directory: Path) -> Path:
    """Make a project and return the path of its settings file.

    Raises:
        ProjectDirectoryError: the directory is in use, or holds something else.
        OSError: it cannot be written.
    """
    lock = layout.DirectoryLock(directory)
    try:
        layout.make(directory)
    finally:
        lock.release()
    return directory / "boinc_gahp.toml"


def run_project(
    directory: Path,
    port: int = 0,
    hosts: int = 4,
    *,
    php: Php | None = None,
    listen: str = HOST,
    names: Sequence[str] = (),
    delete_delay: float = 0.0,
    announce: Callable[[str], None] = print,
) -> int:
    """Run a project until SIGINT or SIGTERM; return the exit status 0.

    Must be called in the main thread. ``announce`` gets the line with the address, once it answers,
    and one with the address of its page. ``listen``, ``names`` and ``delete_delay`` are as in
    :class:`LocalProject`.

    Raises:
        ProjectDirectoryError, DatabaseError, ProjectFailed, OSError: it cannot run, or go on.
    """
    from boinc_gahp.localproject.project import LocalProject  # noqa: PLC0415  (not for init)

    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with LocalProject(
            directory,
            port=port,
            hosts=hosts,
            php=php,
            listen=listen,
            names=names,
            delete_delay=delete_delay,
        ) as project:
            announce(
                f"The project answers at {project.url} ({hosts} volunteers). Settings for the "
                f"submitter: {directory / 'boinc_gahp.toml'}. Stop it with Ctrl-C."
            )
            announce(f"Its web page: {project.page}")
            if notice := project.notice():
                announce(notice)
            while not stop.wait(_CHECK_EVERY):
                project.check()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0
