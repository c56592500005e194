"""Notices that the program was replaced on the disk, as by an upgrade, or removed.

A daemon has all of its modules in memory and would go on as the old version for as long as its
user has jobs, which may be weeks. So it ends, and HTCondor starts another within seconds
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

    #: Inode, size and time of the last change: another file hardly has all three. Not the device:
    #: a file server's gets another number when it is mounted anew.
    Identity = tuple[int, int, int]

log = logging.getLogger("boinc_gahp.daemon")

#: Seconds between two looks.
INTERVAL = 10.0
#: Seconds for which a program has to be gone: while pip installs another version there is none.
GONE = 60.0


class Program:
    """The program that this process began as.

    Args:
        path: what was run; links are followed, so that one may lead to another version later.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._began_as = _identity(path)
        except OSError:
            self._began_as = None

    def watch(self, closing: threading.Event, end: Callable[[], object]) -> None:
        """Look at it until ``closing`` is set, if it could be found at the start; never raises.

        Args:
            closing: ends it.
            end: ends the process.
        """
        if self._began_as is None:
            return
        seen = time.monotonic()
        while not closing.wait(INTERVAL):
            try:
                found = _identity(self._path)
            except OSError:  # a file server that does not answer: there is a next time
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
