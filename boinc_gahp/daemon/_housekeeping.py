"""Looks after the files of a running daemon: its program, its ledger, and files that it made.

The program on the disk may be replaced, as by an upgrade, or removed. A daemon has all of its
modules in memory and would stay at the old version for as long as its user has jobs, which may be
weeks. So it ends, and HTCondor starts a new one within seconds (``gridmanager-batch.rst``,
"Crashes"). The ledger has to stay in its place, and must not grow for ever. Files that were made
for container jobs are removed when no job has needed them for a day.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from typing import TYPE_CHECKING

from boinc_gahp.errors import LedgerError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from boinc_gahp.config.settings import HTCondor
    from boinc_gahp.fetch.context import Opener

    #: Inode, size and time of the last change: another file hardly has the same three. Not the
    #: device: a file server's device number changes when it is mounted again.
    Identity = tuple[int, int, int]

log = logging.getLogger("boinc_gahp.daemon")
ledger_logger = logging.getLogger("boinc_gahp.ledger")

#: Seconds between two checks.
INTERVAL = 10.0
#: Seconds for which a program has to be missing: while pip installs another version, there is none.
GONE = 60.0
#: Seconds after which a file that was made for container jobs, and not used since, is removed; they
#: are looked at as often. A job that is sent later makes it again.
UNUSED = 86400.0


def end_process() -> None:
    """End the daemon; HTCondor starts another."""
    os.kill(os.getpid(), signal.SIGTERM)


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

    def watch(self, closing: threading.Event) -> None:
        """Watch it until ``closing`` is set, if it was found at the start; never raises."""
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
        end_process()


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (pathlib would be imported for it)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def ledger_housekeeping(
    opener: Opener,
    settings: Callable[[], HTCondor],
    closing: threading.Event,
) -> None:
    """Look after the ledger that ``opener`` has opened, until ``closing`` is set; never raises.

    Args:
        opener: the opener of the process's ledger.
        settings: returns the section ``[htcondor]``.
        closing: ends this function when it is set.
    """
    from boinc_gahp.ledger.jobs import JobLedger  # noqa: PLC0415  (after the banner)
    from boinc_gahp.ledger.rows import HTCONDOR_HAS_ASKED  # noqa: PLC0415  (after the banner)
    from boinc_gahp.ledger.upkeep import drop_unneeded  # noqa: PLC0415  (after the banner)
    from boinc_gahp.submit.generated_files import GeneratedFiles  # noqa: PLC0415

    began = time.monotonic()
    next_cleaning = began
    last_message = ""
    while not closing.wait(INTERVAL):
        ledger = opener.opened
        if ledger is None:
            continue
        try:
            if not ledger.store.has_its_place():
                ledger_logger.critical(
                    "The ledger %s was deleted or replaced while boinc_gahp was running: this "
                    "process ends, and HTCondor starts another, which continues with the file that "
                    "is there then",
                    ledger.path,
                )
                end_process()
                return
            has_asked = time.monotonic() - began > HTCONDOR_HAS_ASKED
            drop_unneeded(
                JobLedger(ledger.store), time.time(), settings(), closing, untold=has_asked
            )
            if time.monotonic() >= next_cleaning:
                next_cleaning = time.monotonic() + UNUSED
                GeneratedFiles.of(ledger.path.parent).clean(UNUSED)
        except LedgerError as error:
            ledger_logger.log(
                logging.DEBUG if str(error) == last_message else logging.ERROR, "%s", error
            )
            last_message = str(error)
        except Exception:  # there is a next time
            ledger_logger.exception("housekeeping of the ledger failed")
