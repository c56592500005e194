"""What an account's manager does now and then; no task waits for another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """One kind of work, for one thread at a time; other threads may do other kinds.

    Attributes:
        name: the name of the kind.
        due: given the time in seconds since the epoch, returns when there is something to do; a
            time in the past (0) is now. Only uses the ledger.
        run: does everything that is due at the given time, while its second argument returns true;
            work that cannot be done now stays pending. Raises LedgerError.
    """

    name: str
    due: Callable[[float], float]
    run: Callable[[float, Callable[[], bool]], None]
