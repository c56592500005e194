"""What is owed to a project is paid, turned by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.htcondor.cleanup import Ender
from boinc_gahp.htcondor.leases import Leases

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.htcondor.context import Kept


class Payer:
    """Does what a keeper does about what is owed, turned by hand."""

    def __init__(self, kept: Kept, is_sending: Callable[[int], bool] = lambda _: False) -> None:
        self._kept = kept
        self.ender = Ender(kept, is_sending)
        self._duties = (Leases(kept).duty, *self.ender.duties)

    def due(self, now: float) -> float:
        return min(duty.due(now) for duty in self._duties)

    def pay(self, now: float, *, goes_on: bool = True) -> None:
        for duty in self._duties:
            if duty.due(now) <= now:
                duty.pay(now, lambda: goes_on and not self._kept.stopping.is_set())
