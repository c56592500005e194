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


class ErrorGuard:
    """Logs the errors of a manager's work and has it done again later; thread-safe.

    Args:
        worker: the manager, for the log.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._last_message = ""

    @contextmanager
    def __call__(self, what: str) -> Iterator[RetryTime]:
        """Yield the time to do it again, to be set inside; :data:`FAULT` from now if it fails.

        Args:
            what: the work, for the log: "<worker> could not <what>".
        """
        retry = RetryTime(time.time() + FAULT)
        try:
            yield retry
        except LedgerError as error:
            level = logging.DEBUG if str(error) == self._last_message else logging.ERROR
            log.log(level, "%s could not %s: %s", self._worker, what, error)
            self._last_message = str(error)
        except Exception:
            log.exception("%s could not %s", self._worker, what)
        else:
            return
        retry.at = time.time() + FAULT
