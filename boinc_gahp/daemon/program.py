"""Notices that the program on the disk was replaced, as by an upgrade, or removed.

A daemon has all of its modules in memory and would stay at the old version for as long as its user
has jobs, which may be weeks. So it ends, and HTCondor starts a new one within seconds
(``gridmanager-batch.rst``, "Crashes").
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    #: Inode, size and time of the last change: another file hardly has the same three. Not the
    #: device: a file server's device number changes when it is mounted again.
    Identity = tuple[int, int, int]

log = logging.getLogger("boinc_gahp.daemon")

#: Seconds between two checks.
INTERVAL = 10.0
#: Seconds for which a program has to be missing: while pip installs another version, there is none.
GONE = 60.0


class Program:
    """The program that this process was started from.

    Args:
        path: the program that was run; links are followed: they may lead to another version later.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._began_as = _identity(path)
        except OSError:
            self._began_as = None

    def watch(self, closing: threading.Event, end: Callable[[], object]) -> None:
        """Watch it until ``closing`` is set, if it was found at the start; never raises.

        Args:
            closing: ends the watch.
            end: ends the process.
        """
        if self._began_as is None:
            return
        seen = time.monotonic()
        while not closing.wait(INTERVAL):
            try:
                found = _identity(self._path)
            except OSError:  # a file server that does not answer: try again next time
                continue
            if found is None and time.monotonic() - seen > GONE:
                log.error("The program %s was removed while it ran: this process ends", self._path)
                break
            if found is not None and found != self._began_as:
                log.warning(
                    "The program %s was replaced by another while it ran: this process ends, and "
                    "HTCondor starts the new one",
                    self._path,
                )
                break
            if found is not None:
                seen = time.monotonic()
        else:
            return
        end()


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (pathlib would be imported for it)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
