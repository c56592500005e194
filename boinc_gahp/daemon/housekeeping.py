"""Looks after a process's ledger: its file stays in place, and does not grow for ever."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from boinc_gahp.errors import LedgerError
from boinc_gahp.ledger import JobLedger, drop_unneeded

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from boinc_gahp.bridge import Opener
    from boinc_gahp.ledger import Ledger

log = logging.getLogger("boinc_gahp.ledger")

#: Seconds between checks whether the ledger is still in its place.
INTERVAL = 10.0
#: Seconds after which HTCondor has asked about all jobs that it still has.
HTCONDOR_HAS_ASKED = 3600.0


def ledger_housekeeping(
    opener: Opener,
    forget_after: Callable[[], float],
    closing: threading.Event,
    end: Callable[[], object],
) -> None:
    """Look after the ledger that ``opener`` has opened, until ``closing`` is set; never raises.

    Args:
        opener: the opener of the process's ledger.
        forget_after: returns the setting.
        closing: ends this function when it is set.
        end: ends the process: another file has replaced its ledger.
    """
    began = time.monotonic()
    last_message = ""
    while not closing.wait(INTERVAL):
        ledger = opener.opened
        if ledger is None:
            continue
        try:
            if not _has_its_place(ledger):
                end()
                return
            has_asked = time.monotonic() - began > HTCONDOR_HAS_ASKED
            drop_unneeded(
                JobLedger(ledger.store), time.time(), forget_after(), closing, untold=has_asked
            )
        except LedgerError as error:
            log.log(logging.DEBUG if str(error) == last_message else logging.ERROR, "%s", error)
            last_message = str(error)
        except Exception:  # there is a next time
            log.exception("housekeeping of the ledger failed")


def _has_its_place(ledger: Ledger) -> bool:
    became = ledger.store.keep_place()
    if became == "put back":
        log.error(
            "The ledger %s was deleted while boinc_gahp was running: it was restored with all its "
            "contents",
            ledger.path,
        )
    elif became == "replaced":
        log.critical(
            "The ledger %s was replaced by another file while boinc_gahp was running: this process "
            "ends, and HTCondor starts another, which continues with that file",
            ledger.path,
        )
    return became != "replaced"
