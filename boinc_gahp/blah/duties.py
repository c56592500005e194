"""What a keeper has to do now and then, each thing by itself: none waits for another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Duty:
    """One kind of work, for one thread at a time; others may be at other kinds.

    Attributes:
        name: of the kind.
        due: given the time in seconds since the epoch, returns when there is something to do; a
            time in the past (0) is now. Asks only the ledger.
        pay: does all that is due at the time that it is given, while its second argument says to
            go on; what cannot be done now stays owed. Raises LedgerError.
    """

    name: str
    due: Callable[[float], float]
    pay: Callable[[float, Callable[[], bool]], None]
