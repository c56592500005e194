"""Handles errors in a manager's work."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("boinc_gahp.htcondor")

#: Seconds to wait after an error of the ledger, or an unexpected one.
FAULT = 5.0


@dataclass(slots=True)
class RetryTime:
    """When to do something again, in seconds since the epoch."""

    at: float


class Guard:
    """Keeps a manager going after any error, since the next attempt may succeed; thread-safe.

    Args:
        who: the manager, for the log.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._said = ""

    @contextmanager
    def __call__(self, what: str) -> Iterator[RetryTime]:
        """Yield the time to do it again, to be set inside; :data:`FAULT` from now if it fails.

        Args:
            what: the work, for the log: "<who> could not <what>".
        """
        again = RetryTime(time.time() + FAULT)
        try:
            yield again
        except LedgerError as error:
            level = logging.DEBUG if str(error) == self._said else logging.ERROR
            log.log(level, "%s could not %s: %s", self._who, what, error)
            self._said = str(error)
        except Exception:
            log.exception("%s could not %s", self._who, what)
        else:
            return
        again.at = time.time() + FAULT
